"""Kernel means over orbits, in pieces: memory grows with B·M and B·S, never with B·S·M or B·S².

Each piece is recomputed in the backward pass (``torch.utils.checkpoint``), so that only one piece is alive at a time.
"""

from collections.abc import Callable
from typing import TypeGuard

import torch
from gpytorch.kernels import Kernel, ScaleKernel
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from orbitune.gp.squared_exponential import is_squared_exponential, squared_exponential_mean


def evaluate(
    kernel: Kernel, x1: Float[Tensor, "*batch N D"], x2: Float[Tensor, "*batch M D"]
) -> Float[Tensor, "*batch N M"]:
    """K with K[i, j] = k(x1_i, x2_j), as a plain tensor."""
    return kernel(x1, x2).to_dense()


def orbit_mean_Kuf(
    kernel: Kernel,
    Z: Float[Tensor, "M D"],
    H: Float[Tensor, "N S D"],
    max_entries: int,
    weights: Float[Tensor, " S"] | None = None,
    entry_dtype: torch.dtype | None = None,
) -> Float[Tensor, "M N"]:
    """k(z, x) ≈ Σ_i w_i k(z, h_i): covariance of g at the inducing inputs with the orbit average.

    ``entry_dtype`` is for squared-exponential kernels; see :func:`squared_exponential_mean`.
    """
    if is_scaled(kernel):
        return kernel.outputscale * orbit_mean_Kuf(kernel.base_kernel, Z, H, max_entries, weights, entry_dtype)
    if is_squared_exponential(kernel):
        weights = uniform_weights(H) if weights is None else weights.to(H.dtype)
        Z, H = Z / kernel.lengthscale, H / kernel.lengthscale
        return squared_exponential_mean(Z, H, weights, max_entries, entry_dtype).mT
    num_inputs, _, dim = H.shape

    def piece_sum(piece: Tensor, piece_weights: Tensor) -> Tensor:
        K = evaluate(kernel, Z, piece.reshape(-1, dim))  # (M, N·s)
        return K.reshape(Z.shape[0], num_inputs, -1) @ piece_weights

    return sum_in_pieces(piece_sum, H, weights, max_entries // (num_inputs * Z.shape[0]))


def orbit_mean_kff(
    kernel: Kernel,
    H1: Float[Tensor, "N S D"],
    H2: Float[Tensor, "N S D"],
    max_entries: int,
    weights: Float[Tensor, " S"] | None = None,
    entry_dtype: torch.dtype | None = None,
) -> Float[Tensor, " N"]:
    """k_f(x, x) ≈ Σ_ij w_i w_j k(h_i, h'_j): (co)variance of the averages over two sets of orbit points."""
    if is_scaled(kernel):
        return kernel.outputscale * orbit_mean_kff(kernel.base_kernel, H1, H2, max_entries, weights, entry_dtype)
    num_inputs, size, _ = H2.shape
    column_weights = uniform_weights(H2) if weights is None else weights.to(H2.dtype)
    if is_squared_exponential(kernel):
        scaled = H2 / kernel.lengthscale
        other = scaled if H1 is H2 else H1 / kernel.lengthscale
        return squared_exponential_mean(scaled, other, column_weights, max_entries, entry_dtype) @ column_weights

    def piece_sum(piece: Tensor, piece_weights: Tensor) -> Tensor:
        return (evaluate(kernel, piece, H2) @ column_weights) @ piece_weights  # (N, s, S) → (N,)

    return sum_in_pieces(piece_sum, H1, weights, max_entries // (num_inputs * size))


def is_scaled(kernel: Kernel) -> TypeGuard[ScaleKernel]:
    """Whether k = σ² k′, so that the means can be scaled rather than all entries."""
    return type(kernel) is ScaleKernel and kernel.active_dims is None and not kernel.batch_shape


def sum_in_pieces(
    piece_sum: Callable[[Tensor, Tensor], Tensor],
    H: Float[Tensor, "N S D"],
    weights: Float[Tensor, " S"] | None,
    piece_size: int,
) -> Tensor:
    """Σ over pieces of H along the orbit, at most ``piece_size`` (but at least one) of its points at a time."""
    weights = uniform_weights(H) if weights is None else weights.to(H.dtype)
    if piece_size >= H.shape[1]:
        return piece_sum(H, weights)
    step = max(1, piece_size)
    pieces = zip(H.split(step, dim=1), weights.split(step), strict=True)
    sums = [checkpoint(piece_sum, *piece, use_reentrant=False, preserve_rng_state=False) for piece in pieces]
    return sum(sums[1:], sums[0])


def uniform_weights(H: Float[Tensor, "N S D"]) -> Float[Tensor, " S"]:
    """1/S for each of S points."""
    return H.new_full((H.shape[1],), 1 / H.shape[1])
