"""Sparse GP regression on orbit averages of a frozen network's features, as in the paper's appendix on CIFAR-10."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from gpytorch.kernels import Kernel, RBFKernel, ScaleKernel
from torch import Tensor, nn

from orbitune.errors import NumericalError
from orbitune.gp import NaturalPosterior, OrbitFeatures, collapsed_bound
from orbitune.learners import Problem
from orbitune.learners.base import choose_inducing, draw_seed, frozen_features, make_head
from orbitune.likelihoods import Gaussian
from orbitune.model import InvariantGP
from orbitune.objectives import natural_gradient_step, sample_bound
from orbitune.orbits import Orbit
from orbitune.training import Run
from orbitune.training.evaluation import accuracy

MAX_TRIALS = 25
"""Evaluations of the bound in one step of L-BFGS."""


def ard_kernel(num_features: int, lengthscale: float, variance: float) -> Kernel:
    """Squared-exponential with a lengthscale for each feature."""
    kernel = ScaleKernel(RBFKernel(ard_num_dims=num_features))
    kernel.outputscale, kernel.base_kernel.lengthscale = torch.tensor(variance), torch.tensor(lengthscale)
    return kernel


class Score(NamedTuple):
    """What a regression is worth: the share of test images that it classifies right, and its evidence per datum."""

    accuracy: float
    elbo: float


@dataclass(frozen=True)
class Sgpr:
    """Regression on one-hot codes with fixed noise; kernel and inducing inputs by L-BFGS on the collapsed bound.

    The paper sums over the orbit, we average: with a free kernel variance that is the same model.

    Attributes:
        num_data: the first so many training images.
        steps: L-BFGS iterations; the paper's optimiser takes at most 1000.
    """

    num_data: int
    num_inducing: int = 300
    orbit_size: int = 10
    steps: int = 60
    noise_variance: float = 0.01

    def score(
        self, backbone: nn.Module, orbit: Orbit, problem: Problem, test: tuple[Tensor, Tensor], run: Run, name: str
    ) -> Score:
        """Fit the regression at an orbit; ``name`` is unique within the run."""
        likelihood = Gaussian(problem.likelihood.num_outputs, self.noise_variance, labels=True).requires_grad_(False)
        problem = replace(problem, likelihood=likelihood, make_kernel=ard_kernel)
        inputs, targets = problem.inputs[: self.num_data], problem.targets[: self.num_data]
        chosen = run.once(
            f"{name}/inducing",
            lambda: choose_inducing(backbone.eval(), inputs, self.num_inducing, problem, run.generator),
        )
        seed = run.once(f"{name}/seed", lambda: draw_seed(run.generator))
        head = make_head(chosen, problem, NaturalPosterior)
        model = InvariantGP(orbit, backbone, head, likelihood.to(head.Z))
        encoded = model.encode(inputs, targets)
        optimiser = torch.optim.LBFGS(
            [*head.kernel.parameters(), head.Z],
            max_iter=1,  # per step of the run
            max_eval=MAX_TRIALS,  # of a step; the default is 5/4 of max_iter, which leaves no line search at all
            history_size=20,
            line_search_fn="strong_wolfe",
        )
        features: Tensor | None = None
        start: float | None = None  # the loss that a step begins with

        def bound(features: Tensor) -> Tensor:
            return collapsed_bound(head.project(features), encoded, likelihood.noise_variance) / len(inputs)

        def closure() -> Tensor:
            nonlocal start
            assert features is not None
            optimiser.zero_grad()
            try:
                loss = -bound(features)
            except NumericalError:
                if start is None:  # no trial of the line search, but the point it begins at
                    raise
                return features.new_tensor(start + abs(start) + 1)  # a wall: the line search turns back
            if start is None:
                start = loss.item()
            loss.backward()
            return loss

        for step in run.steps(name, self.steps, head=head, optimiser=optimiser):
            if features is None:  # here, and not before the loop, the network is what it was when the run was saved
                features = frozen_features(model, inputs, self.orbit_size, seed)
            start = None
            loss = optimiser.step(closure)
            run.log(phase=name, step=step, elbo=-loss.item())

        def score() -> dict[str, float]:
            values = frozen_features(model, inputs, self.orbit_size, seed) if features is None else features
            every = OrbitFeatures(values.unsqueeze(1), orbit.exact)
            # One full step is the exact optimum of q(u) for the Gaussian likelihood.
            natural_gradient_step(model, sample_bound(model, every, encoded, num_data=len(inputs)), rate=1.0)
            with torch.no_grad():
                elbo = bound(values).item()
            return Score(accuracy(model, *test, self.orbit_size, run.generator), elbo)._asdict()

        return Score(**run.once(f"{name}/score", score))
