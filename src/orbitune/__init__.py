"""Orbitune learns which data augmentation a model should be invariant to, from the training data alone."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from orbitune.model import InvariantGP, build_model
from orbitune.objectives import ElboTerms, collapsed_elbo, natural_gradient_step, sample_elbo, unbiased_elbo

if TYPE_CHECKING:
    from orbitune.estimators import InvariantClassifier, InvariantRegressor

__all__ = [
    "ElboTerms",
    "InvariantClassifier",
    "InvariantGP",
    "InvariantRegressor",
    "build_model",
    "collapsed_elbo",
    "natural_gradient_step",
    "sample_elbo",
    "unbiased_elbo",
]

_ESTIMATORS = ("InvariantClassifier", "InvariantRegressor")


def __getattr__(name: str) -> Any:
    """Estimators bring learners, data and configuration with them: they are imported when first asked for."""
    if name not in _ESTIMATORS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("orbitune.estimators"), name)
