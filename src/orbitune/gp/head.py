"""The last layer: features of an orbit in, law of the invariant function out."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor, nn
from torch.linalg import solve_triangular

from orbitune.errors import InputError
from orbitune.gp.laws import OrbitFeatures, OrbitMarginal, OrbitMoments, OrbitProjection
from orbitune.gp.linalg import Factor, JitterPolicy, cholesky
from orbitune.gp.orbit_kernel import evaluate, orbit_mean_kff, orbit_mean_Kuf
from orbitune.gp.variational import Posterior, WhitenedLaw


@dataclass
class Factored:
    """What a layer that stands still has factored so far."""

    Kuu: Factor | None = None
    q: WhitenedLaw | None = None


_STILL: ContextVar[Mapping[int, Factored]] = ContextVar("layers that stand still", default=MappingProxyType({}))
"""Of this thread: another one may use the same layer, and leave it, at any moment."""


class GPHead(nn.Module):
    """A sparse GP g over features, averaged over orbits: f(x) = E g(h(x_a)).

    The inducing variables are values of g (not f) at Z, so Kuu and the KL do not depend on the orbit.

    Args:
        kernel: any GPyTorch kernel on feature vectors.
        inducing_inputs: Z (M, D), in feature space; see :func:`orbitune.gp.select_inducing`.
        posterior: q(u); see :class:`orbitune.gp.NaturalPosterior`.
        jitter: what is added to the diagonal of Kuu.
        max_kernel_entries: the largest kernel matrix held at once; larger ones are computed in pieces.
    """

    def __init__(
        self,
        kernel: Kernel,
        inducing_inputs: Float[Tensor, "M D"],
        posterior: Posterior,
        *,
        jitter: JitterPolicy = JitterPolicy(),
        max_kernel_entries: int = 2**22,
    ):
        super().__init__()
        if posterior.num_inducing != inducing_inputs.shape[0]:
            raise InputError(
                f"q(u) has {posterior.num_inducing} inducing values, "
                f"but there are {inducing_inputs.shape[0]} inducing inputs"
            )
        self.kernel = kernel
        self.Z = nn.Parameter(inducing_inputs.detach().clone())
        self.posterior = posterior
        self.jitter = jitter
        self.max_kernel_entries = max_kernel_entries
        # One dtype for the whole layer: that of the features it was made from.
        self.to(self.Z.dtype)

    @property
    def num_outputs(self) -> int:
        """C."""
        return self.posterior.num_outputs

    def flat_features(self, features: Float[Tensor, "*batch S D"]) -> Float[Tensor, "N S D"]:
        """Features in the dtype of this layer, with all batch axes in one; checked to have as many dimensions as Z."""
        if features.shape[-1] != self.Z.shape[1]:
            raise InputError(
                f"the GP was built on features of {self.Z.shape[1]} dimensions, "
                f"the backbone now gives {features.shape[-1]}. "
                "Likely cause: inputs of another size than those the model was built from"
            )
        return features.to(self.Z.dtype).flatten(end_dim=-3)

    @contextmanager
    def standing_still(self) -> Generator[None]:
        """Within, this layer does not move and gets no gradients: Kuu and q(v) are factored once, at first use."""
        still = _STILL.get()
        token = _STILL.set({**still, id(self): still.get(id(self), Factored())})
        try:
            yield
        finally:
            _STILL.reset(token)

    def law(self) -> WhitenedLaw:
        """The current q(v)."""
        factored = _STILL.get().get(id(self))
        if factored is None:
            return self.posterior.law()
        if factored.q is None:
            with torch.no_grad():
                factored.q = self.posterior.law()
        return factored.q

    def factor_Kuu(self) -> Factor:
        """Lower Cholesky factor of Kuu."""
        factored = _STILL.get().get(id(self))
        if factored is None:
            return self._factor_Kuu()
        if factored.Kuu is None:
            with torch.no_grad():
                factored.Kuu = self._factor_Kuu()
        return factored.Kuu

    def _factor_Kuu(self) -> Factor:
        return cholesky(evaluate(self.kernel, self.Z, self.Z), self.jitter, name="Kuu")

    def entry_dtype(self, features: Float[Tensor, "*batch S D"]) -> torch.dtype:
        """Of kernel entries: of (at most) single-precision features, double would compute digits that are not there."""
        return min(self.Z.dtype, torch.promote_types(features.dtype, torch.float32), key=lambda dtype: dtype.itemsize)

    def whiten(
        self,
        L: Float[Tensor, "M M"],
        H: Float[Tensor, "N S D"],
        weights: Float[Tensor, " S"] | None,
        entry_dtype: torch.dtype,
    ) -> Float[Tensor, "M N"]:
        """A = L⁻¹ Kuf: one column per orbit average, however many points the orbit has."""
        Kuf = orbit_mean_Kuf(self.kernel, self.Z, H, self.max_kernel_entries, weights, entry_dtype)
        return solve_triangular(L, Kuf, upper=False)

    def project(
        self, features: Float[Tensor, "*batch S D"], weights: Float[Tensor, " S"] | None = None
    ) -> OrbitProjection:
        """The finite average f̂(x) = Σ_i w_i g(h_i) given the inducing variables, one per set of S orbit points."""
        batch_shape, entry_dtype = features.shape[:-2], self.entry_dtype(features)
        H = self.flat_features(features)  # (N, S, D)
        A = self.whiten(self.factor_Kuu().L, H, weights, entry_dtype)  # (M, N)
        kff = orbit_mean_kff(self.kernel, H, H, self.max_kernel_entries, weights, entry_dtype)  # (N,)
        # A variance is never negative; rounding of the difference may be.
        residual = (kff - A.square().sum(0)).clamp_min(0)
        return OrbitProjection(A.mT.reshape(*batch_shape, -1), residual.reshape(batch_shape))

    def marginal(
        self, features: Float[Tensor, "*batch S D"], q: WhitenedLaw, weights: Float[Tensor, " S"] | None = None
    ) -> OrbitMarginal:
        """Exact law of f̂ under q: mean = aᵀm, var = Σ_ij w_i w_j k(h_i, h_j) − ‖a‖² + ‖R a‖²."""
        projection = self.project(features, weights)
        A = projection.whitened.flatten(end_dim=-2).mT  # (M, N)
        mean = projection.whitened @ q.mean  # (*batch, C)
        explained = q.variance_of(A).mT.reshape(*mean.shape[:-1], -1)  # (*batch, C or 1)
        var = (projection.residual.unsqueeze(-1) + explained).expand_as(mean)
        return OrbitMarginal(mean, var, projection.whitened)

    def moments(self, features: OrbitFeatures, q: WhitenedLaw) -> OrbitMoments:
        """Unbiased (μ, μ², τ) of the infinite orbit average, from independent halves of the orbit.

        τ ≈ mean_{i∈1, j∈2} k(h_i, h_j) − a₁·a₂ + (R a₁)·(R a₂): products of independent halves have no bias.
        """
        H1, H2 = (self.flat_features(half) for half in features.halves())  # (B, S/2, D)
        weights, entry_dtype = features.half_weights(), self.entry_dtype(features.values)
        A = self.whiten(self.factor_Kuu().L, torch.cat((H1, H2)), weights, entry_dtype)  # (M, 2B)
        kff = orbit_mean_kff(self.kernel, H1, H2, self.max_kernel_entries, weights, entry_dtype)  # (B,)
        A1, A2 = A.chunk(2, dim=1)  # (M, B)
        mean_1, mean_2 = (A.mT @ q.mean).chunk(2)  # (B, C)
        RA1, RA2 = q.scale(A).chunk(2, dim=-1)  # (C or 1, M, B)
        tau = kff - (A1 * A2).sum(0) + (RA1 * RA2).sum(-2)  # (C or 1, B)
        return OrbitMoments(mean_1, mean_2, tau.mT.expand_as(mean_1), (A1 + A2).mT / 2)
