"""Samples of g as functions (Matheron's rule; Wilson et al., 2020): prior draw + update by the inducing values.

g_k(·) = φ_k(·)ᵀw_k + k(·, Z) Kuu⁻¹ (u_k − φ_k(Z)ᵀw_k),  u_k ~ q(u).

The prior draw uses random Fourier features φ_k with frequencies of its own for every k. The features' kernel is
unbiased, so mean and covariance over draws are exactly those of q(g), whatever the number of features.
"""

from dataclasses import dataclass
from functools import singledispatch

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor

from orbitune.errors import InputError, UnsupportedKernelError
from orbitune.gp.head import GPHead
from orbitune.gp.orbit_kernel import orbit_mean_Kuf, sum_in_pieces
from orbitune.gp.variational import WhitenedLaw
from orbitune.random import normal


@dataclass(frozen=True)
class FunctionDraws:
    """K functions g_k, each with C outputs, that can be evaluated anywhere."""

    head: GPHead
    frequencies: Float[Tensor, "K F D"]
    weights: Float[Tensor, "K two_F C"]  # of the cosines, then of the sines, times the kernel's amplitude
    update: Float[Tensor, "K M C"]  # Kuu⁻¹(u − prior draw at Z)

    def prior(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "K N C"]:
        """The prior draw φ_k(h)ᵀw_k."""
        angles = features @ self.frequencies.mT  # (K, N, F)
        return torch.cat((angles.cos(), angles.sin()), dim=-1) @ self.weights

    def __call__(self, features: Float[Tensor, "N D"]) -> Float[Tensor, "K N C"]:
        """g_k at N feature vectors."""
        return self.orbit_mean(features.unsqueeze(1))

    def orbit_mean(
        self, features: Float[Tensor, "*batch S D"], weights: Float[Tensor, " S"] | None = None
    ) -> Float[Tensor, "K *batch C"]:
        """f̂_k(x) = Σ_i w_i g_k(h_i), one per set of S orbit points."""
        head, batch_shape = self.head, features.shape[:-2]
        H = head.flat_features(features)  # (N, S, D)
        num_inputs, _, dim = H.shape

        def piece_sum(piece: Tensor, piece_weights: Tensor) -> Tensor:
            values = self.prior(piece.reshape(-1, dim)).unflatten(1, (num_inputs, -1))  # (K, N, s, C)
            return torch.einsum("knsc,s->knc", values, piece_weights)

        entries_per_point = num_inputs * self.frequencies.shape[0] * self.weights.shape[1]
        prior = sum_in_pieces(piece_sum, H, weights, head.max_kernel_entries // entries_per_point)  # (K, N, C)
        Kuf = orbit_mean_Kuf(head.kernel, head.Z, H, head.max_kernel_entries, weights)  # (M, N)
        return (prior + Kuf.mT @ self.update).unflatten(1, batch_shape)


def draw_functions(
    head: GPHead,
    q: WhitenedLaw,
    num_draws: int,
    generator: torch.Generator | None = None,
    num_frequencies: int = 256,
) -> FunctionDraws:
    """Draw K functions from q(g); differentiable in the kernel and in Z."""
    if num_draws < 1:
        raise InputError(f"expected at least one draw of g (num_f_samples ≥ 1), got {num_draws}")
    Z = head.Z
    variance, frequencies = spectral_frequencies(head.kernel, num_draws * num_frequencies, Z, generator)
    frequencies = frequencies.unflatten(0, (num_draws, num_frequencies))  # (K, F, D)
    amplitude = (variance / num_frequencies).sqrt()
    weights = amplitude * normal((num_draws, 2 * num_frequencies, head.num_outputs), generator, Z)
    L, jitter = head.factor_Kuu()
    draws = FunctionDraws(head, frequencies, weights, update=weights.new_zeros(num_draws, *q.mean.shape))
    # Kuu carries jitter, so the prior value it is the covariance of carries noise of that variance.
    prior_u = draws.prior(Z) + jitter.sqrt() * normal((num_draws, *q.mean.shape), generator, Z)  # (K, M, C)
    # Kuu⁻¹(u − prior_u) = L⁻ᵀ(v − L⁻¹ prior_u)
    whitened = q.draw(num_draws, generator) - torch.linalg.solve_triangular(L, prior_u, upper=False)
    update = torch.linalg.solve_triangular(L.mT, whitened, upper=True)
    return FunctionDraws(head, frequencies, weights, update)


@singledispatch
def spectral_frequencies(
    kernel: Kernel, num: int, like: Tensor, generator: torch.Generator | None
) -> tuple[Float[Tensor, ""], Float[Tensor, "F D"]]:
    """The variance k(0) of a stationary kernel and draws of ω from its normalised spectral density.

    ``like`` (…, D) gives the number of input dimensions, the dtype and the device. Register a function for your own
    kernel with ``@spectral_frequencies.register``.
    """
    raise UnsupportedKernelError(
        f"pathwise samples need the spectral density of the kernel, which is not known for {type(kernel).__name__}. "
        "Known: RBFKernel, MaternKernel, and ScaleKernel of these. Either use the exact law (pathwise=False), "
        "which works with any kernel, or register the density with orbitune.gp.spectral_frequencies.register"
    )


@spectral_frequencies.register
def _(kernel: ScaleKernel, num: int, like: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    # A ScaleKernel takes over the active_dims of its base kernel.
    if kernel.active_dims is not None and kernel.base_kernel.active_dims is None:
        raise UnsupportedKernelError("pathwise samples: set active_dims on the base kernel, not on its ScaleKernel")
    variance, frequencies = spectral_frequencies(kernel.base_kernel, num, like, generator)
    return kernel.outputscale * variance, frequencies


@spectral_frequencies.register
def _(kernel: RBFKernel, num: int, like: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    return like.new_ones(()), _scaled_normals(kernel, num, like, generator)


@spectral_frequencies.register
def _(kernel: MaternKernel, num: int, like: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    # Student-t with 2ν degrees of freedom: a normal over the root of χ²_{2ν}/2ν, and 2ν is 1, 3 or 5.
    dof = {0.5: 1, 1.5: 3, 2.5: 5}[float(kernel.nu)]  # ty: ignore[invalid-argument-type]
    chi_square = normal((num, dof), generator, like).square().sum(-1, keepdim=True)
    return like.new_ones(()), _scaled_normals(kernel, num, like, generator) * (dof / chi_square).sqrt()


def _scaled_normals(kernel: Kernel, num: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
    """ω = ε / lengthscale; dimensions the kernel does not look at (``active_dims``) get frequency zero."""
    dim = like.shape[-1]
    active = torch.arange(dim, device=like.device)
    if isinstance(kernel.active_dims, Tensor):
        active = kernel.active_dims
    frequencies = normal((num, len(active)), generator, like) / kernel.lengthscale
    return frequencies.new_zeros(num, dim).index_copy(1, active, frequencies)
