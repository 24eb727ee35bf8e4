"""Numbers."""

from typing import Any

import numpy as np
import torch
from sklearn.base import RegressorMixin
from torch import Tensor

from orbitune.errors import InputError, unknown_name
from orbitune.estimators.base import InvariantEstimator
from orbitune.estimators.classifier import NUM_F_SAMPLES
from orbitune.estimators.parts import own_likelihood
from orbitune.gp import OrbitMarginal
from orbitune.likelihoods import Gaussian, Likelihood, Poisson

INITIAL_NOISE = 0.3  # of the variance of y; started lower, training ends before it has risen to what data need


class InvariantRegressor(RegressorMixin, InvariantEstimator):
    """A regressor, of one or several numbers, that learns which transformations of its inputs do not change them.

    Parameters and attributes are those of :class:`~orbitune.InvariantClassifier`, except:

    Args:
        likelihood: "gaussian" (None), "poisson" for counts, or a :class:`~orbitune.likelihoods.Likelihood` with one
            output per target.

    Attributes:
        target_shift_, target_scale_: Gaussian targets are standardised by these within ``fit``; ``elbo_`` is in the
            units of y.
    """

    target_shift_: np.ndarray
    target_scale_: np.ndarray

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> "InvariantRegressor":
        """Learn the ranges of the orbit and a model that is invariant to them, from these data alone."""
        inputs, y = self._read_training_data(X, y, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self._target_shape = y.shape[1:]
        columns = y.reshape(len(y), -1)  # (n, C)
        likelihood = self._likelihood(columns.shape[1])
        self.target_shift_, self.target_scale_ = np.zeros(columns.shape[1]), np.ones(columns.shape[1])
        if isinstance(likelihood, Gaussian):
            spread = columns.std(axis=0)
            self.target_shift_, self.target_scale_ = columns.mean(axis=0), np.where(spread > 0, spread, 1.0)
        targets = torch.tensor((columns - self.target_shift_) / self.target_scale_, dtype=inputs.dtype)
        self._learn(inputs, targets, likelihood)
        if self.elbo_ is not None:  # the density of y, not of standardised y
            self.elbo_ -= float(np.log(self.target_scale_).sum())
        return self

    def _likelihood(self, num_targets: int) -> Likelihood:
        match self.likelihood:
            case Likelihood():
                return own_likelihood(self.likelihood, (num_targets,), f"y has {num_targets} targets")
            case None | "gaussian":
                return Gaussian(num_targets, INITIAL_NOISE)
            case "poisson":
                return Poisson(num_targets)
            case _:
                raise unknown_name("likelihood of a regressor", self.likelihood, ("gaussian", "poisson"))

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predictive mean of y, in its shape; with ``return_std`` also its standard deviation, noise included."""

        def moments(law: OrbitMarginal, generator: torch.Generator) -> Tensor:
            likelihood: Any = self.model_.likelihood
            mean = likelihood.predictive_mean(law, NUM_F_SAMPLES, generator)
            if not return_std:
                return mean.unsqueeze(-1)
            if not hasattr(likelihood, "predictive_variance"):
                raise InputError(f"return_std: {type(likelihood).__name__} has no predictive_variance(law)")
            return torch.stack((mean, likelihood.predictive_variance(law)), dim=-1)  # (B, C, 2)

        values = self._predict_each(X, moments)
        shape = (len(values), *self._target_shape)
        mean = (values[..., 0] * self.target_scale_ + self.target_shift_).reshape(shape)
        if not return_std:
            return mean
        return mean, (np.sqrt(values[..., 1]) * self.target_scale_).reshape(shape)
