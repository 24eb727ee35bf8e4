"""The squared-exponential kernel's mean over orbits, with every entry visited once each way.

The entries are most of what the last layer computes. Written operation by operation they pass through memory some
fifteen times per step; here they are made and used tile by tile, while they are in the processor's cache. Where they
are few enough they are kept for the gradient, and otherwise made again.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from gpytorch.kernels import Kernel, RBFKernel
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

TILE_ENTRIES = 2**19
"""Most kernel entries at a time: four megabytes in double precision."""

MAX_KEPT_BYTES = 2**27
"""Entries up to which all are kept for the backward pass."""


def is_squared_exponential(kernel: Kernel) -> bool:
    """Whether k(z, h) = exp(−½‖(z − h)/ℓ‖²) and nothing else."""
    return type(kernel) is RBFKernel and kernel.active_dims is None and not kernel.batch_shape


def squared_exponential_mean(
    Z: Float[Tensor, "*N M D"],
    H: Float[Tensor, "N S D"],
    weights: Float[Tensor, " S"],
    max_entries: int = TILE_ENTRIES,
    entry_dtype: torch.dtype | None = None,
) -> Float[Tensor, "N M"]:
    """K[n, m] = Σ_i w_i exp(−½‖z_m − h_ni‖²), of inputs in units of the lengthscale.

    The z_m are the same for every n, or (N, M, D) of each n its own. Entries are computed in ``entry_dtype``, by
    default that of H, which the result has in either case.
    """
    centre = Z.detach().mean(-2, keepdim=True)  # distances are differences of squares: small ones lose fewer digits
    tensors = [tensor.to(entry_dtype or H.dtype) for tensor in (Z - centre, H - centre, weights)]
    return _SquaredExponentialMean.apply(*tensors, min(max_entries, TILE_ENTRIES)).to(H.dtype)


class _SquaredExponentialMean(torch.autograd.Function):
    """With G the gradient of the result, E_nim = exp(−½‖h_ni − z_m‖²) and V_nim = G_nm E_nim:

    dh_ni = w_i Σ_m V_nim (z_m − h_ni),    dz_m = Σ_ni w_i V_nim (h_ni − z_m),    dw_i = Σ_nm V_nim,

    where dz_nm, of a z for every n, is not summed over n.
    """

    @staticmethod
    def forward(ctx: Any, Z: Tensor, H: Tensor, weights: Tensor, max_entries: int) -> Tensor:
        ctx.save_for_backward(Z, H, weights)
        ctx.max_entries = max_entries
        result, columns = H.new_zeros(len(H), Z.shape[-2]), by_inputs(columns_of, Z)
        few = H[..., 0].numel() * Z.shape[-2] * H.itemsize <= MAX_KEPT_BYTES
        ctx.kept = [] if few and any(ctx.needs_input_grad) else None
        for inputs, points in tiles(H, max_entries // Z.shape[-2]):
            E = entries(columns(inputs), H[inputs, points])
            if ctx.kept is not None:
                ctx.kept.append(E)
            result[inputs] += (weights[points].expand(len(E), 1, -1) @ E)[:, 0]  # the product of a vector would copy E
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, G: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        Z, H, weights = ctx.saved_tensors
        needs_Z, needs_H, needs_weights, _ = ctx.needs_input_grad
        columns, Z1 = by_inputs(columns_of, Z), by_inputs(with_ones, Z)
        gradient_Z1 = Z.new_zeros(*Z.shape[:-1], Z.shape[-1] + 1) if needs_Z else None
        gradient_H = torch.empty_like(H) if needs_H else None
        gradient_weights = torch.zeros_like(weights) if needs_weights else None
        for tile, (inputs, points) in enumerate(tiles(H, ctx.max_entries // Z.shape[-2])):
            h, w = H[inputs, points], weights[points, None]
            E = entries(columns(inputs), h) if ctx.kept is None else ctx.kept[tile]
            V = E * G[inputs, None]  # (n, s, M)
            if gradient_H is not None or gradient_weights is not None:
                VZ1 = V @ Z1(inputs)
                total = VZ1[..., -1:]
                if gradient_weights is not None:
                    gradient_weights[points] += total.sum((0, 2))
                if gradient_H is not None:
                    gradient_H[inputs, points] = w * (VZ1[..., :-1] - total * h)
            if gradient_Z1 is not None:
                wh1 = torch.cat((w * h, w.expand(len(h), -1, -1)), dim=-1)
                if Z.ndim == 2:
                    gradient_Z1.addmm_(V.flatten(0, 1).mT, wh1.flatten(0, 1))
                else:
                    gradient_Z1[inputs] += V.mT @ wh1
        gradient_Z = None if gradient_Z1 is None else gradient_Z1[..., :-1] - gradient_Z1[..., -1:] * Z
        return gradient_Z, gradient_H, gradient_weights, None


def entries(columns: Float[Tensor, "*n D2 M"], h: Float[Tensor, "n s D"]) -> Float[Tensor, "n s M"]:
    """exp(−½‖h − z‖²), by one matrix product: −½‖h − z‖² = (h, 1, −½‖h‖²)·(z, −½‖z‖², 1)."""
    rows = torch.cat((h, torch.ones_like(h[..., :1]), -h.square().sum(-1, keepdim=True) / 2), dim=-1)
    # Rounding may find a square that is negative; entries that are next to nothing must not become subnormal, which
    # processors compute many times more slowly.
    return (rows @ columns).clamp_(math.log(torch.finfo(h.dtype).tiny) / 2, 0).exp_()


def columns_of(Z: Float[Tensor, "*N M D"]) -> Float[Tensor, "*N D2 M"]:
    """(z, −½‖z‖², 1) for each z: what :func:`entries` multiplies with."""
    return torch.cat((Z, -Z.square().sum(-1, keepdim=True) / 2, torch.ones_like(Z[..., :1])), dim=-1).mT.contiguous()


def with_ones(Z: Float[Tensor, "*N M D"]) -> Float[Tensor, "*N M D1"]:
    """(z, 1) for each z."""
    return torch.cat((Z, torch.ones_like(Z[..., :1])), dim=-1)


def by_inputs(make: Callable[[Tensor], Tensor], Z: Float[Tensor, "*N M D"]) -> Callable[[slice], Tensor]:
    """What is made of the z of some inputs: once if all inputs share them, else of those of a tile at a time."""
    if Z.ndim == 2:
        shared = make(Z)
        return lambda inputs: shared
    return lambda inputs: make(Z[inputs])


def tiles(H: Float[Tensor, "N S D"], max_points: int) -> Iterator[tuple[slice, slice]]:
    """Which inputs and which of their points, tile by tile: all points of some inputs, or some points of one."""
    num_inputs, size = H.shape[:2]
    points_per_tile = max(1, max_points)
    inputs_per_tile = max(1, points_per_tile // size)
    for first in range(0, num_inputs, inputs_per_tile):
        for start in range(0, size, points_per_tile):
            yield slice(first, first + inputs_per_tile), slice(start, start + points_per_tile)
