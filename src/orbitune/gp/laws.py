"""The values that travel through the last layer: features of an orbit, and what is known about f from them."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from orbitune.errors import InputError


@dataclass(frozen=True)
class OrbitFeatures:
    """Features h(x_a) of A independently drawn orbits of S points for each of B inputs.

    ``exact`` says that the S points are the whole orbit, so that their mean is the expectation itself. ``weights`` of
    the S points sum to one; None is 1/S each. They carry the gradient in φ where that is not in the points (see
    ``UniformOrbit.draw``).
    """

    values: Float[Tensor, "B A S D"]
    exact: bool = False
    weights: Float[Tensor, " S"] | None = None

    def half_weights(self) -> Float[Tensor, " S2"] | None:
        """Weights of the points of one half: those of its orbits, one after the other."""
        if self.weights is None or self.exact:
            return self.weights
        orbits_per_half = self.values.shape[1] // 2
        return self.weights.repeat(orbits_per_half) / orbits_per_half

    def halves(self) -> tuple[Float[Tensor, "B S2 D"], Float[Tensor, "B S2 D"]]:
        """Two equal sets of orbit points per input that are independent given the input.

        An exact orbit has no randomness to share: both halves are the whole orbit, and products of them are exact.
        """
        if self.exact:
            return self.values[:, 0], self.values[:, 0]
        num_orbits = self.values.shape[1]
        if num_orbits % 2:
            raise InputError(f"halves need an even number of independently drawn orbits per input, got {num_orbits}")
        first, second = self.values.chunk(2, dim=1)
        return first.flatten(1, 2), second.flatten(1, 2)


@dataclass(frozen=True)
class OrbitProjection:
    """The orbit average f̂ as seen from the inducing variables, under the prior.

    Given whitened v, f̂ ~ N(aᵀv, residual) with a = L⁻¹ k(Z, x) and residual = k_f(x, x) − ‖a‖².
    """

    whitened: Float[Tensor, "*batch M"]
    residual: Float[Tensor, "*batch"]


@dataclass(frozen=True)
class OrbitMarginal:
    """The exact Gaussian law of the finite orbit average f̂(x) = (1/S) Σ_i g(x_a^i) under q(g).

    Outputs are independent given the input. ``whitened`` holds a = L⁻¹ k(Z, x), which natural gradients need.
    """

    mean: Float[Tensor, "*batch C"]
    var: Float[Tensor, "*batch C"]
    whitened: Float[Tensor, "*batch M"]

    def expected_squared_error(self, targets: Float[Tensor, "*batch C"]) -> Float[Tensor, "*batch C"]:
        """E(y − f̂)² = (y − mean)² + var."""
        return (targets - self.mean).square() + self.var


@dataclass(frozen=True)
class OrbitMoments:
    """Unbiased estimates of μ, μ² and τ of the infinite orbit average, from two independent halves of an orbit.

    ``mean_1`` and ``mean_2`` each estimate μ and their product estimates μ²; ``tau`` estimates the variance and may
    be negative. This is not a Gaussian law: only likelihoods quadratic in f may use it.
    """

    mean_1: Float[Tensor, "B C"]
    mean_2: Float[Tensor, "B C"]
    tau: Float[Tensor, "B C"]
    whitened: Float[Tensor, "B M"]

    @property
    def mean(self) -> Float[Tensor, "B C"]:
        """The mean over the complete orbit, the better estimate of μ where only μ is wanted."""
        return (self.mean_1 + self.mean_2) / 2

    def expected_squared_error(self, targets: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """Unbiased estimate of E(y − f)² = y² − 2yμ + μ² + τ, as (y − μ₁)(y − μ₂) + τ."""
        return (targets - self.mean_1) * (targets - self.mean_2) + self.tau
