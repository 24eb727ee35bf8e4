"""The collapsed bound: the Gaussian ELBO with q(u) at its optimum, in closed form (SGPR; Titsias, 2009)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.gp.laws import OrbitProjection
from orbitune.gp.linalg import JitterPolicy, cholesky


def collapsed_bound(
    projection: OrbitProjection, targets: Float[Tensor, "N C"], noise_variance: Float[Tensor, ""]
) -> Float[Tensor, ""]:
    """max_q ELBO = Σ_c log N(y_c; 0, A Aᵀ + σ²I) − C Σ_n residual_n / 2σ², where row n of A is a_nᵀ (N, M).

    With B = I + AᵀA/σ² = L_B L_Bᵀ the determinant lemma and Woodbury's identity leave only M × M matrices.
    The inducing inputs matter only through A, so this serves any orbit and any backbone.
    """
    A = projection.whitened  # (N, M)
    targets = targets.to(A.dtype)
    num_data, num_outputs = targets.shape
    B = torch.eye(A.shape[1], dtype=A.dtype, device=A.device) + A.mT @ A / noise_variance  # (M, M)
    L_B = cholesky(B, JitterPolicy(start=0.0), name="I + AᵀA/σ²").L
    c = torch.linalg.solve_triangular(L_B, A.mT @ targets, upper=False) / noise_variance  # (M, C)
    log_det = num_data * noise_variance.log() + 2 * L_B.diagonal().log().sum()
    quadratic = targets.square().sum() / noise_variance - c.square().sum()
    trace = projection.residual.sum() / noise_variance
    return -0.5 * (num_outputs * (num_data * math.log(2 * math.pi) + log_det + trace) + quadratic)
