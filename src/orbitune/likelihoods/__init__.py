"""Observation models p(y | f), all log-concave in f."""

from orbitune.likelihoods.base import FactorizedLikelihood, Likelihood
from orbitune.likelihoods.classification import Bernoulli, Softmax
from orbitune.likelihoods.concavity import check_log_concave
from orbitune.likelihoods.gaussian import Gaussian
from orbitune.likelihoods.poisson import Poisson

__all__ = [
    "Bernoulli",
    "FactorizedLikelihood",
    "Gaussian",
    "Likelihood",
    "Poisson",
    "Softmax",
    "check_log_concave",
]
