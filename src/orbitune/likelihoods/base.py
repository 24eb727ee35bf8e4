"""What a likelihood must say, and what follows from it: expectations, derivatives and predictions."""

import copy
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitune.errors import InputError
from orbitune.gp.laws import OrbitMarginal
from orbitune.random import normal


class Likelihood(nn.Module, ABC):
    """p(y | f) with C outputs f per input, log-concave in f.

    A subclass says ``log_prob``, ``conditional_mean`` and ``example_targets``, and may override whatever it knows in
    closed form. Expectations under the law of f̂ are Monte Carlo with ``num_samples`` draws; a likelihood that is a
    product over outputs derives from :class:`FactorizedLikelihood` and gets quadrature instead. N is any number of
    rows: methods see flat batches only.
    """

    shared_curvature: ClassVar[bool] = False
    """Whether −∂² log p/∂f² is the same for every output, so that all outputs can share one covariance of q(u)."""

    prior_variance: ClassVar[float] = 1.0
    """A kernel variance to start from: how far f must reach for the targets to be explained."""

    def __init__(self, num_outputs: int):
        super().__init__()
        if num_outputs < 1:
            raise InputError(f"{type(self).__name__}: expected at least one output, got num_outputs={num_outputs}")
        self.num_outputs = num_outputs

    @abstractmethod
    def log_prob(self, f: Float[Tensor, "N C"], targets: Shaped[Tensor, "N *T"]) -> Float[Tensor, " N"]:
        """log p(y | f), differentiable in f and in the likelihood's own parameters."""

    @abstractmethod
    def conditional_mean(self, f: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """E[y | f]; for labels, the probability of each class."""

    @abstractmethod
    def example_targets(self) -> Tensor:
        """A few valid targets, as the user would pass them: log-concavity is probed on them."""

    def mean_log_prob(self, f: Float[Tensor, "N C"]) -> Float[Tensor, " N"]:
        """(1/C) Σ_c log p(y = c | f), over all labels: what label smoothing mixes in."""
        raise InputError(
            f"label smoothing is for likelihoods of labels (Softmax, Bernoulli), not {type(self).__name__}"
        )

    def for_network(self) -> "Likelihood":
        """A fresh likelihood to train a network under, before a GP replaces its last layer: by default a copy.

        A copy, because what a network makes of it on data it has memorised (no noise at all) is no start for a GP.
        """
        return copy.deepcopy(self)

    def encode(self, targets: Shaped[Tensor, "N *T"]) -> Shaped[Tensor, "N *U"]:
        """Check targets as given by the user and bring them to the form that ``log_prob`` expects."""
        return targets

    def expectation_points(
        self, law: OrbitMarginal, num_samples: int, generator: torch.Generator | None
    ) -> tuple[Float[Tensor, "K N C"], Float[Tensor, " K"]]:
        """Values of f and weights such that E[t(f)] ≈ Σ_k w_k t(f_k), differentiable in the law."""
        if num_samples < 1:
            raise InputError(f"{type(self).__name__} draws f: expected num_f_samples ≥ 1, got {num_samples}")
        mean, std = law.mean, _sqrt(law.var)
        eps = normal((num_samples, *mean.shape), generator, mean)
        return mean + std * eps, mean.new_full((num_samples,), 1 / num_samples)

    def prediction_points(
        self, law: OrbitMarginal, num_samples: int, generator: torch.Generator | None
    ) -> tuple[Float[Tensor, "K N C"], Float[Tensor, " K"]]:
        """As :meth:`expectation_points`, but all rows share their standardised draws.

        The prediction for an input then does not depend on its neighbours.
        """
        row = law.mean[:1]
        standard = OrbitMarginal(torch.zeros_like(row), torch.ones_like(row), law.whitened[:1])
        eps, weights = self.expectation_points(standard, num_samples, generator)  # (K, 1, C), (K,)
        return law.mean + _sqrt(law.var) * eps, weights

    def derivatives(
        self, f: Float[Tensor, "N C"], targets: Shaped[Tensor, "N *T"]
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"]]:
        """∂ log p/∂f and −∂² log p/∂f_c² (diagonal), by automatic differentiation."""
        with torch.inference_mode(False), torch.enable_grad():
            f, targets = f.detach().clone().requires_grad_(), targets.clone()
            (gradient,) = torch.autograd.grad(self.log_prob(f, targets).sum(), f, create_graph=True)
            columns = [_gradient_of(gradient[:, c], f)[:, c] for c in range(f.shape[1])]
        return gradient.detach(), -torch.stack(columns, dim=1)

    def expected_log_prob(
        self,
        law: OrbitMarginal,
        targets: Shaped[Tensor, "N *T"],
        num_samples: int,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, " N"]:
        """E[log p(y | f̂)] under the law of f̂."""
        points, weights = self.expectation_points(law, num_samples, generator)
        return weights @ self.log_prob_of_points(points, targets)

    @torch.no_grad()
    def expected_derivatives(
        self,
        law: OrbitMarginal,
        targets: Shaped[Tensor, "N *T"],
        num_samples: int,
        generator: torch.Generator | None = None,
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C_or_1"]]:
        """∂ = E[∂ log p/∂f] and β = −E[∂² log p/∂f²] ≥ 0: all that a natural-gradient step needs."""
        points, weights = self.expectation_points(law, num_samples, generator)
        gradient, curvature = self.derivatives(points.flatten(0, 1), _repeat(targets, len(points)))
        average = lambda values: torch.einsum("k,knc->nc", weights, values.reshape(points.shape))  # noqa: E731
        return average(gradient), average(curvature)

    @torch.no_grad()
    def predictive_mean(
        self, law: OrbitMarginal, num_samples: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "N C"]:
        """E[y]; for labels, the predictive probability of each class."""
        points, weights = self.prediction_points(law, num_samples, generator)
        values = self.conditional_mean(points.flatten(0, 1)).reshape(points.shape)
        return torch.einsum("k,knc->nc", weights, values)

    @torch.no_grad()
    def log_predictive(
        self,
        law: OrbitMarginal,
        targets: Shaped[Tensor, "N *T"],
        num_samples: int,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, " N"]:
        """log E[p(y | f̂)], the log predictive density of encoded targets."""
        points, weights = self.prediction_points(law, num_samples, generator)
        return (self.log_prob_of_points(points, targets) + weights.log()[:, None]).logsumexp(0)

    def log_prob_of_points(
        self, points: Float[Tensor, "K N C"], targets: Shaped[Tensor, "N *T"]
    ) -> Float[Tensor, "K N"]:
        """log p(y_n | f_kn) for K values of f per target."""
        return self.log_prob(points.flatten(0, 1), _repeat(targets, len(points))).reshape(points.shape[:2])


class FactorizedLikelihood(Likelihood):
    """p(y | f) = Π_c p(y_c | f_c): one-dimensional expectations, by Gauss–Hermite quadrature.

    A subclass says ``log_prob_each`` elementwise. Targets are (N, C), or (N,) if there is one output.
    """

    num_nodes: ClassVar[int] = 50

    @abstractmethod
    def log_prob_each(self, f: Float[Tensor, "N C"], targets: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """log p(y_c | f_c), elementwise."""

    def log_prob(self, f: Float[Tensor, "N C"], targets: Float[Tensor, "N C"]) -> Float[Tensor, " N"]:
        """Σ_c log p(y_c | f_c)."""
        return self.log_prob_each(f, targets).sum(-1)

    def encode(self, targets: Shaped[Tensor, "N *T"]) -> Float[Tensor, "N C"]:
        """(N,) or (N, C) finite numbers → (N, C) floats."""
        name = type(self).__name__
        encoded = targets.unsqueeze(-1) if targets.ndim == 1 else targets
        if encoded.ndim != 2 or encoded.shape[1] != self.num_outputs:
            raise InputError(
                f"targets of {name}: expected shape (N, {self.num_outputs})"
                f"{' or (N,)' if self.num_outputs == 1 else ''}, got {tuple(targets.shape)}"
            )
        if not encoded.isfinite().all():
            raise InputError(f"targets of {name}: {int((~encoded.isfinite()).sum())} values are NaN or infinite")
        return encoded if encoded.is_floating_point() else encoded.to(torch.get_default_dtype())

    def expectation_points(
        self, law: OrbitMarginal, num_samples: int, generator: torch.Generator | None
    ) -> tuple[Float[Tensor, "K N C"], Float[Tensor, " K"]]:
        """f_k = mean + std·x_k at Gauss–Hermite nodes: nothing is sampled."""
        x, weights = gauss_hermite(self.num_nodes, like=law.mean)
        return law.mean + _sqrt(law.var) * x[:, None, None], weights

    def derivatives(
        self, f: Float[Tensor, "N C"], targets: Float[Tensor, "N C"]
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"]]:
        """First and negative second derivative; the Hessian is diagonal, so two passes give all of it."""
        with torch.inference_mode(False), torch.enable_grad():
            f, targets = f.detach().clone().requires_grad_(), targets.clone()
            (gradient,) = torch.autograd.grad(self.log_prob(f, targets).sum(), f, create_graph=True)
            return gradient.detach(), -_gradient_of(gradient, f)

    @torch.no_grad()
    def log_predictive(
        self,
        law: OrbitMarginal,
        targets: Float[Tensor, "N C"],
        num_samples: int = 0,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, " N"]:
        """Σ_c log ∫ p(y_c | f) N(f; mean_c, var_c) df, with nodes about the mode of each integrand.

        Nodes about the mean of the law would miss a target far from it. The integrand is log-concave, so it has one
        mode, and a Gaussian of the curvature there covers it.
        """
        mode, std = self._laplace(law, targets)
        x, weights = gauss_hermite(self.num_nodes, like=mode)
        points = mode + std * x[:, None, None]  # (K, N, C)
        log_p = self.log_prob_each(points.flatten(0, 1), _repeat(targets, len(points))).reshape(points.shape)
        prior = torch.distributions.Normal(law.mean, _sqrt(law.var)).log_prob(points)
        # N(f; mode, std²) is the density the nodes integrate against: divide it out.
        around_mode = torch.distributions.Normal(mode, std).log_prob(points)
        return (log_p + prior - around_mode + weights.log()[:, None, None]).logsumexp(0).sum(-1)

    def _laplace(self, law: OrbitMarginal, targets: Float[Tensor, "N C"]) -> tuple[Tensor, Tensor]:
        """Mode and Laplace standard deviation of p(y | f) N(f; mean, var), by Newton steps of bounded length."""
        std = _sqrt(law.var)
        f, precision, longest = law.mean, 1 / std.square(), std.clamp_min(1)
        for _ in range(100):
            gradient, curvature = self.derivatives(f, targets)
            step = (gradient - (f - law.mean) * precision) / (curvature + precision)
            f = f + step.clamp(-longest, longest)
            if step.abs().max() < 1e-6:
                break
        return f, (self.derivatives(f, targets)[1] + precision).rsqrt()


def gauss_hermite(num_nodes: int, like: Tensor) -> tuple[Float[Tensor, " K"], Float[Tensor, " K"]]:
    """Nodes and weights with E t(x) ≈ Σ_k w_k t(x_k) for x ~ N(0, 1); exact for polynomials of degree < 2K."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(num_nodes)
    x, w = torch.from_numpy(np.stack((nodes, weights / weights.sum()))).to(like)
    return x, w


def _sqrt(var: Tensor) -> Tensor:
    """√var with a finite gradient at zero."""
    return var.clamp_min(torch.finfo(var.dtype).eps ** 2).sqrt()


def _repeat(targets: Tensor, times: int) -> Tensor:
    return targets.expand(times, *targets.shape).flatten(0, 1)


def _gradient_of(values: Tensor, f: Tensor) -> Tensor:
    """∂ Σ values / ∂f, zero where ``values`` do not depend on f (a log-density linear in f)."""
    if not values.requires_grad:
        return torch.zeros_like(f)
    return torch.autograd.grad(values.sum(), f, retain_graph=True, allow_unused=True, materialize_grads=True)[0]
