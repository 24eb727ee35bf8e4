"""The scikit-learn face: estimators with ``fit``, ``predict`` and ``score`` for numpy arrays."""

from orbitune.estimators.classifier import InvariantClassifier
from orbitune.estimators.regressor import InvariantRegressor

__all__ = ["InvariantClassifier", "InvariantRegressor"]
