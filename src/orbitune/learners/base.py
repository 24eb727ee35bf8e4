"""What every learner gets and gives, and the steps that several of them share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from torch import Tensor, nn

from orbitune.errors import InputError, refuse_bad_numbers
from orbitune.features import extract_features
from orbitune.gp import GPHead, Posterior, median_distance, select_inducing
from orbitune.inputs import Inputs, take
from orbitune.likelihoods import Gaussian, Likelihood
from orbitune.model import InvariantGP, encode_targets
from orbitune.network import OrbitNetwork
from orbitune.objectives import check_halves
from orbitune.orbits import Orbit
from orbitune.random import some_of
from orbitune.training import Run
from orbitune.training.evaluation import mean_elbo
from orbitune.training.phases import ObjectiveName
from orbitune.training.time_left import PlannedLoop

MAX_CANDIDATES = 5000
"""Inputs among whose features inducing inputs are chosen."""


def squared_exponential(num_features: int, lengthscale: float, variance: float) -> Kernel:
    """The default kernel, at given hyper-parameters."""
    kernel = ScaleKernel(RBFKernel())
    kernel.outputscale, kernel.base_kernel.lengthscale = torch.tensor(variance), torch.tensor(lengthscale)
    return kernel


@dataclass(frozen=True)
class Problem:
    """What is to be learned, and from what.

    Attributes:
        inputs: (N, …) training inputs: a tensor, or images that are read when they are needed.
        targets: (N, …) one target per input.
        orbit: the family of transformations, at its initial ranges.
        likelihood: of the targets.
        make_backbone: a fresh network without its last layer; learners may need several.
        make_kernel: a kernel on features, from their number, a lengthscale (the median distance) and a variance.
    """

    inputs: Inputs
    targets: Tensor
    orbit: Orbit
    likelihood: Likelihood
    make_backbone: Callable[[], nn.Module]
    make_kernel: Callable[[int, float, float], Kernel] = field(default=squared_exponential)

    def __post_init__(self) -> None:
        encode_targets(self.likelihood, self.inputs, self.targets)  # raises now what folds would find piece by piece


@dataclass(frozen=True)
class Outcome:
    """A trained model, and its evidence per datum where the learner has one."""

    model: InvariantGP | OrbitNetwork
    elbo_per_datum: float | None


COUNTS = (
    "batch_size",
    "cycles",
    "elbo_batch_size",
    "folds",
    "max_rounds",
    "network_batch_size",
    "num_f_samples",
    "num_inducing",
    "orbit_size",
    "steps",
    "warm_inputs",
)
"""Settings of learners that cannot be zero; epochs and steps of what surrounds the learning of ranges can."""


class Learner(ABC):
    """A way to find φ and a model at φ. Implementations are frozen dataclasses: their fields are the configuration."""

    learns_ranges: ClassVar[bool] = True
    """Whether φ moves, or is used as given."""

    natural_only: ClassVar[bool] = False
    """Whether q(u) moves by natural gradients alone, so that their rate cannot be 0."""

    def __post_init__(self) -> None:
        refuse_bad_numbers(self, COUNTS)
        smoothing = getattr(self, "label_smoothing", 0.0)
        if smoothing >= 1:
            raise InputError(f"label_smoothing must be less than 1, got {smoothing}")
        rate = getattr(self, "natural_rate", 1.0)
        if rate > 1 or (self.natural_only and rate == 0):
            least = "more than 0" if self.natural_only else "at least 0"
            raise InputError(f"natural_rate must be {least} and at most 1, got {rate}")

    def check(self, problem: Problem) -> None:  # noqa: B027  (most learners take any problem)
        """Refuse now what could only fail after networks have been trained."""

    @abstractmethod
    def learn(self, problem: Problem, run: Run) -> Outcome:
        """Learn from the problem's data alone. Randomness and interruption are the run's."""

    def plan(self, num_data: int) -> list[PlannedLoop]:
        """The loops of :meth:`learn`, in their order, so that the time left can be told; none if that is not known."""
        return []


def choose_inducing(
    backbone: nn.Module, inputs: Inputs, num_inducing: int, problem: Problem, generator: torch.Generator
) -> dict[str, Tensor]:
    """Inducing inputs Z (M, D) by greedy variance, and the median distance, of the features of (some) ``inputs``.

    What :meth:`Run.once` remembers; :func:`make_head` makes a head of it.
    """
    inputs = take(inputs, some_of(len(inputs), MAX_CANDIDATES, generator))
    with torch.no_grad():
        features = torch.cat([extract_features(backbone, chunk) for chunk in inputs.split(500)]).double()
    lengthscale = median_distance(features, generator)
    kernel = problem.make_kernel(features.shape[1], lengthscale, 1.0).to(features)
    Z = select_inducing(features, min(num_inducing, len(features)), kernel, "greedy")
    return {"Z": Z, "lengthscale": torch.tensor(lengthscale)}


def make_head(
    chosen: dict[str, Tensor], problem: Problem, make_posterior: Callable[..., Posterior], variance: float | None = None
) -> GPHead:
    """A GP on chosen inducing inputs, with the likelihood's idea of a prior variance unless one is given."""
    Z, likelihood = chosen["Z"], problem.likelihood
    variance = likelihood.prior_variance if variance is None else variance
    kernel = problem.make_kernel(Z.shape[1], chosen["lengthscale"].item(), variance).to(Z)
    posterior = make_posterior(len(Z), likelihood.num_outputs, shared_covariance=likelihood.shared_curvature)
    return GPHead(kernel, Z, posterior.to(Z))


def training_elbo(model: InvariantGP, problem: Problem, orbit_size: int, run: Run) -> float:
    """The evidence per datum of the training data, under the final model."""
    compute = partial(mean_elbo, model, problem.inputs, problem.targets, orbit_size, run.generator)
    return run.once("training elbo", compute)


def steps_of(epochs: int | float, num_data: int, batch_size: int) -> int:
    """Minibatches in so many epochs; one of a small data set counts as ten, or its networks would hardly move."""
    return max(1, round(epochs * max(num_data / batch_size, 10)))


def objective_of(likelihood: Likelihood) -> ObjectiveName:
    """The unbiased bound where it holds, the sample bound elsewhere."""
    return "unbiased" if isinstance(likelihood, Gaussian) else "sample"


def require_halves(problem: Problem, orbit_size: int) -> None:
    """Refuse an orbit that the unbiased bound, where it will be used, could not split."""
    if objective_of(problem.likelihood) == "unbiased":
        check_halves(problem.orbit, orbit_size)


@torch.no_grad()
def frozen_features(model: InvariantGP, inputs: Inputs, orbit_size: int, seed: int) -> Tensor:
    """Features (N, S, D) of one orbit per input, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    chunks = [model.orbit_features(chunk, orbit_size, generator=generator).values[:, 0] for chunk in inputs.split(100)]
    return torch.cat(chunks)


def draw_seed(generator: torch.Generator) -> int:
    """A seed for numbers that must be drawn again on resume."""
    return int(torch.randint(2**62, (), generator=generator))
