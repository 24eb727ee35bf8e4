"""How φ is found: cross-fitted evidence (ours), the paper's coordinate ascent, its counter-examples, and baselines."""

from orbitune.learners.base import Learner, Outcome, Problem
from orbitune.learners.coordinate import CoordinateAscent
from orbitune.learners.crossfit import CrossFit
from orbitune.learners.fixed import AugmentedNetwork, FixedRanges, PlainNetwork
from orbitune.learners.joint import Joint
from orbitune.learners.maximum_likelihood import MaximumLikelihood

LEARNERS: dict[str, type[Learner]] = {
    "crossfit": CrossFit,
    "coordinate": CoordinateAscent,
    "joint": Joint,
    "max-likelihood": MaximumLikelihood,
    "fixed": FixedRanges,
    "augmented": AugmentedNetwork,
    "plain": PlainNetwork,
}

__all__ = [
    "LEARNERS",
    "AugmentedNetwork",
    "CoordinateAscent",
    "CrossFit",
    "FixedRanges",
    "Joint",
    "Learner",
    "MaximumLikelihood",
    "Outcome",
    "PlainNetwork",
    "Problem",
]
