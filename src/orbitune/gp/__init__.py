"""The Gaussian-process last layer: from the features of an orbit to the law of the invariant function."""

from orbitune.gp.collapsed import collapsed_bound
from orbitune.gp.head import GPHead
from orbitune.gp.inducing import default_kernel, median_distance, select_inducing
from orbitune.gp.laws import OrbitFeatures, OrbitMarginal, OrbitMoments, OrbitProjection
from orbitune.gp.linalg import JitterPolicy, cholesky
from orbitune.gp.pathwise import FunctionDraws, draw_functions, spectral_frequencies
from orbitune.gp.variational import CholeskyPosterior, NaturalPosterior, Posterior, PrecisionLaw, RootLaw, WhitenedLaw

__all__ = [
    "CholeskyPosterior",
    "FunctionDraws",
    "GPHead",
    "JitterPolicy",
    "NaturalPosterior",
    "OrbitFeatures",
    "OrbitMarginal",
    "OrbitMoments",
    "OrbitProjection",
    "Posterior",
    "PrecisionLaw",
    "RootLaw",
    "WhitenedLaw",
    "cholesky",
    "collapsed_bound",
    "default_kernel",
    "draw_functions",
    "median_distance",
    "select_inducing",
    "spectral_frequencies",
]
