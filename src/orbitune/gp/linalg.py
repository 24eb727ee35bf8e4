"""Cholesky factorisation with one jitter policy for the whole library."""

import logging
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.errors import NumericalError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class JitterPolicy:
    """How much is added to the diagonal before a Cholesky factorisation, relative to the mean of that diagonal.

    The first attempt adds ``start``; each failure multiplies by ``factor``, up to ``limit``. ``start=None`` means
    1e-6 in double and 1e-4 in single precision.
    """

    start: float | None = None
    factor: float = 10.0
    limit: float = 1e-1

    def first(self, dtype: torch.dtype) -> float:
        """The jitter of the first attempt."""
        if self.start is not None:
            return self.start
        return 1e-6 if dtype == torch.float64 else 1e-4


class Factor(NamedTuple):
    """A lower Cholesky factor of K + jitter·I."""

    L: Tensor  # (*batch, M, M)
    jitter: Tensor  # (), the absolute amount that was added to the diagonal


def cholesky(K: Float[Tensor, "*batch M M"], policy: JitterPolicy = JitterPolicy(), name: str = "matrix") -> Factor:
    """L with L Lᵀ = K + jitter·I. More jitter than the policy's first is logged as a warning, never added silently."""
    scale = K.detach().diagonal(dim1=-2, dim2=-1).mean()
    _check_finite(scale, K, name)
    identity = torch.eye(K.shape[-1], dtype=K.dtype, device=K.device)
    relative = policy.first(K.dtype)
    while True:
        jitter = relative * scale
        L, info = torch.linalg.cholesky_ex(K + jitter * identity if relative else K)
        # Entries that are not finite end on the diagonal, which is cheaper to look at; some devices do not report them.
        if not info.any() and L.diagonal(dim1=-2, dim2=-1).isfinite().all():
            return Factor(L, jitter)
        _check_finite(K, K, name)
        if relative >= policy.limit:
            break
        # A policy that starts at zero escalates from the rounding error of the dtype.
        relative = max(relative, torch.finfo(K.dtype).eps) * policy.factor
        logger.warning("%s is not positive definite: jitter raised to %.0e of its mean diagonal", name, relative)
    raise NumericalError(
        f"{name} ({'×'.join(map(str, K.shape))}) is not positive definite even with {relative:.0e} of its mean "
        f"diagonal ({scale.item():.3g}) added. Likely causes: (a) many inducing inputs coincide, use fewer; (b) the "
        "lengthscale is far larger than the distances between features; (c) single precision, use model.head.double()"
    )


def _check_finite(entries: Tensor, K: Tensor, name: str) -> None:
    if not entries.isfinite().all():
        raise NumericalError(
            f"{name} ({'×'.join(map(str, K.shape))}) contains NaN or infinite entries, so it has no Cholesky factor. "
            "Likely causes: (a) a kernel or network parameter diverged, try a smaller learning rate; "
            "(b) the features of the network are not finite"
        )
