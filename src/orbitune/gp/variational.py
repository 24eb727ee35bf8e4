"""q(u), whitened: u = L v with L Lᵀ = Kuu and q(v) = N(m, Σ), one (m, Σ) per output.

Two ways to hold it: natural parameters with natural-gradient steps, and mean and Cholesky factor for ordinary
optimisers. Everything else only sees the resulting :class:`WhitenedLaw`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.linalg import solve_triangular

from orbitune.errors import InputError
from orbitune.gp.linalg import JitterPolicy, cholesky
from orbitune.random import normal


@dataclass(frozen=True)
class WhitenedLaw(ABC):
    """q(v) = N(m, RᵀR) per output; R is lower triangular, and shared if its leading size is 1."""

    mean: Float[Tensor, "M C"]

    @property
    @abstractmethod
    def root(self) -> Float[Tensor, "C_or_1 M M"]:
        """R."""

    @abstractmethod
    def scale(self, A: Float[Tensor, "M N"]) -> Float[Tensor, "C_or_1 M N"]:
        """R A."""

    @property
    @abstractmethod
    def requires_grad(self) -> bool:
        """Whether an optimiser moves it."""

    def kl(self) -> Float[Tensor, ""]:
        """KL(q(v) ‖ N(0, I)) = ½ Σ_c [ tr Σ_c + m_cᵀm_c − M − log|Σ_c| ], which equals KL(q(u) ‖ p(u))."""
        num_inducing, num_outputs = self.mean.shape
        log_det = 2 * self.root.diagonal(dim1=-2, dim2=-1).abs().log().sum(-1)  # (C or 1,)
        trace = self.root.square().sum((-2, -1))  # (C or 1,)
        per_output = (trace - log_det - num_inducing).expand(num_outputs)
        return (per_output.sum() + self.mean.square().sum()) / 2

    def variance_of(self, A: Float[Tensor, "M N"]) -> Float[Tensor, "C_or_1 N"]:
        """Var_q(aᵀv) = ‖R a‖² for each column a of A."""
        return self.scale(A).square().sum(-2)

    def draw(self, num_draws: int, generator: torch.Generator | None) -> Float[Tensor, "K M C"]:
        """Draws v = m + Rᵀε of the whitened inducing values."""
        eps = normal((num_draws, *self.mean.shape), generator, self.mean)
        root = self.root.expand(self.mean.shape[1], -1, -1)
        return self.mean + torch.einsum("cnm,knc->kmc", root, eps)


@dataclass(frozen=True)
class RootLaw(WhitenedLaw):
    """Given by R itself."""

    R: Float[Tensor, "C_or_1 M M"]

    @property
    def root(self) -> Float[Tensor, "C_or_1 M M"]:
        """R."""
        return self.R

    def scale(self, A: Float[Tensor, "M N"]) -> Float[Tensor, "C_or_1 M N"]:
        """R A."""
        return self.R @ A

    @property
    def requires_grad(self) -> bool:
        """Whether an optimiser moves it."""
        return self.mean.requires_grad or self.R.requires_grad


@dataclass(frozen=True)
class PrecisionLaw(WhitenedLaw):
    """Given by L with L Lᵀ = Σ⁻¹, so that R = L⁻¹; the inverse is only computed where the KL or a draw needs it."""

    factor: Float[Tensor, "C_or_1 M M"]

    @cached_property
    def root(self) -> Float[Tensor, "C_or_1 M M"]:
        """R."""
        return self.scale(torch.eye(self.factor.shape[-1], dtype=self.factor.dtype, device=self.factor.device))

    def scale(self, A: Float[Tensor, "M N"]) -> Float[Tensor, "C_or_1 M N"]:
        """R A."""
        return solve_triangular(self.factor, A.expand(*self.factor.shape[:-2], -1, -1), upper=False)

    @property
    def requires_grad(self) -> bool:
        """Whether an optimiser moves it."""
        return self.mean.requires_grad or self.factor.requires_grad


class Posterior(nn.Module, ABC):
    """Holds the parameters of q(v)."""

    num_inducing: int
    num_outputs: int

    @abstractmethod
    def law(self) -> WhitenedLaw:
        """The current q(v)."""


class NaturalPosterior(Posterior):
    """q(v) in natural parameters Λ = Σ⁻¹ and θ = Λ m, moved by natural-gradient steps.

    Both are buffers, not parameters: no optimiser or weight decay touches them, checkpoints keep them.
    Starts at the prior, Λ = I and θ = 0. With ``shared_covariance`` all outputs share one Λ, which is what the
    Gaussian likelihood leads to.
    """

    precision: Tensor  # Λ (C or 1, M, M)
    theta: Tensor  # θ (M, C)

    def __init__(self, num_inducing: int, num_outputs: int, *, shared_covariance: bool = False):
        super().__init__()
        self.num_inducing, self.num_outputs = num_inducing, num_outputs
        identity = torch.eye(num_inducing).repeat(1 if shared_covariance else num_outputs, 1, 1)
        self.register_buffer("precision", identity)
        self.register_buffer("theta", torch.zeros(num_inducing, num_outputs))

    def law(self) -> WhitenedLaw:
        """L = chol(Λ) and m = Λ⁻¹θ."""
        # Λ ⪰ I by construction: any jitter here would only repair rounding.
        L = cholesky(self.precision, JitterPolicy(start=0.0), name="precision of q(u)").L  # (C or 1, M, M)
        columns = self.theta.tensor_split(len(L), dim=1)  # all of them for the one shared factor, or one for each
        # Factor by factor: of a batch of factors, PyTorch would make a copy first.
        mean = torch.cat([torch.cholesky_solve(theta, factor) for theta, factor in zip(columns, L, strict=True)], dim=1)
        return PrecisionLaw(mean, L)

    @torch.no_grad()
    def step(
        self,
        whitened: Float[Tensor, "B M"],
        mean: Float[Tensor, "B C"],
        gradient: Float[Tensor, "B C"],
        curvature: Float[Tensor, "B C_or_1"],
        *,
        scale: float,
        rate: float,
    ) -> None:
        """A stochastic natural-gradient step of rate ρ: (Λ, θ) ← (1−ρ)(Λ, θ) + ρ(Λ*, θ*).

        Λ* = I + s Σ_n β_n a_n a_nᵀ,  θ* = s Σ_n a_n (β_n μ_n + ∂_n),  with ∂ = E[∂ log p/∂f], β = −E[∂² log p/∂f²] ≥ 0
        and s = N/B. Positive definite by construction for every 0 ≤ ρ ≤ 1; ρ = 1 on all data is the exact answer
        for the Gaussian likelihood.
        """
        if not 0 <= rate <= 1:
            raise InputError(f"rate of a natural-gradient step: expected 0 ≤ rate ≤ 1, got {rate}")
        if curvature.shape[1] not in (1, self.precision.shape[0]):
            raise InputError(
                f"this q(u) shares one covariance over its {self.num_outputs} outputs, but the likelihood has a "
                "curvature per output: build NaturalPosterior with shared_covariance=False"
            )
        A = whitened.to(self.theta.dtype)  # (B, M)
        weighted = (curvature.mT.unsqueeze(-1).to(A.dtype) * A).expand(len(self.precision), -1, -1)  # (C or 1, B, M)
        self.precision.baddbmm_(A.mT.expand(len(weighted), -1, -1), weighted, beta=1 - rate, alpha=rate * scale)
        self.precision.diagonal(dim1=-2, dim2=-1).add_(rate)
        self.theta.lerp_(scale * (A.mT @ (curvature * mean + gradient).to(A.dtype)), rate)


class CholeskyPosterior(Posterior):
    """q(v) by its mean and covariance root, as parameters for an ordinary optimiser (the paper uses Adam).

    Args:
        initial_variance: Σ starts at this multiple of I (the paper: 0.01).
    """

    def __init__(
        self, num_inducing: int, num_outputs: int, *, shared_covariance: bool = False, initial_variance: float = 1.0
    ):
        super().__init__()
        if not initial_variance > 0:
            raise InputError(f"initial variance of q(u) must be positive, got {initial_variance}")
        self.num_inducing, self.num_outputs = num_inducing, num_outputs
        self.mean = nn.Parameter(torch.zeros(num_inducing, num_outputs))
        root = initial_variance**0.5 * torch.eye(num_inducing)
        self.raw_root = nn.Parameter(root.repeat(1 if shared_covariance else num_outputs, 1, 1))

    def law(self) -> WhitenedLaw:
        """R is the lower triangle of the stored matrix; only RᵀR matters, so signs on its diagonal are free."""
        return RootLaw(self.mean, self.raw_root.tril())
