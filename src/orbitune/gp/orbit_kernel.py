"""Kernel means over orbits, in pieces: memory grows with B·M and B·S, never with B·S·M or B·S².

Each piece is recomputed in the backward pass (``torch.utils.checkpoint``), so that only one piece is alive at a time.
"""

from collections.abc import Callable

from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint


def evaluate(
    kernel: Kernel, x1: Float[Tensor, "*batch N D"], x2: Float[Tensor, "*batch M D"]
) -> Float[Tensor, "*batch N M"]:
    """K with K[i, j] = k(x1_i, x2_j), as a plain tensor."""
    return kernel(x1, x2).to_dense()


def orbit_mean_Kuf(
    kernel: Kernel, Z: Float[Tensor, "M D"], H: Float[Tensor, "N S D"], max_entries: int
) -> Float[Tensor, "M N"]:
    """k(z, x) ≈ (1/S) Σ_i k(z, h_i): covariance of g at the inducing inputs with the orbit average."""
    num_inputs, size, dim = H.shape

    def piece_sum(piece: Tensor) -> Tensor:
        K = evaluate(kernel, Z, piece.reshape(-1, dim))  # (M, N·s)
        return K.reshape(Z.shape[0], num_inputs, -1).sum(-1)

    return sum_in_pieces(piece_sum, H, max_entries // (num_inputs * Z.shape[0])) / size


def orbit_mean_kff(
    kernel: Kernel, H1: Float[Tensor, "N S1 D"], H2: Float[Tensor, "N S2 D"], max_entries: int
) -> Float[Tensor, " N"]:
    """k_f(x, x) ≈ (1/S₁S₂) Σ_ij k(h_i, h'_j): (co)variance of the averages over two sets of orbit points."""
    num_inputs, size_1, _ = H1.shape
    size_2 = H2.shape[1]

    def piece_sum(piece: Tensor) -> Tensor:
        return evaluate(kernel, piece, H2).sum((-2, -1))  # (N, s, S2) → (N,)

    return sum_in_pieces(piece_sum, H1, max_entries // (num_inputs * size_2)) / (size_1 * size_2)


def sum_in_pieces(piece_sum: Callable[[Tensor], Tensor], H: Float[Tensor, "N S D"], piece_size: int) -> Tensor:
    """Σ over pieces of H along the orbit, at most ``piece_size`` (but at least one) of its points at a time."""
    pieces = H.split(max(1, piece_size), dim=1)
    if len(pieces) == 1:
        return piece_sum(H)
    total = checkpoint(piece_sum, pieces[0], use_reentrant=False, preserve_rng_state=False)
    for piece in pieces[1:]:
        total = total + checkpoint(piece_sum, piece, use_reentrant=False, preserve_rng_state=False)
    return total
