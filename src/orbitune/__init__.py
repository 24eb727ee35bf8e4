"""Orbitune learns which data augmentation a model should be invariant to, from the training data alone."""

from orbitune.model import InvariantGP, build_model
from orbitune.objectives import ElboTerms, collapsed_elbo, natural_gradient_step, sample_elbo, unbiased_elbo

__all__ = [
    "ElboTerms",
    "InvariantGP",
    "build_model",
    "collapsed_elbo",
    "natural_gradient_step",
    "sample_elbo",
    "unbiased_elbo",
]
