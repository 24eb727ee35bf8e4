"""Pieces of a network pass that the backward pass computes again, to save memory."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

MAX_PRODUCT_BYTES = 2**30
"""Of costly activations, how much is kept nevertheless; of the pieces beyond, everything is computed again."""

COSTLY = 64
"""Multiplications per entry from which the result of a convolution or matrix product is costly."""


class Recomputation:
    """Checkpoints of the pieces of one pass.

    As long as there is room for them, results of costly operations are kept, and only the cheap ones (ReLU, pooling,
    warps) are computed again.

    Args:
        backbone: what the pieces run; it must not change results of convolutions or matrix products in place, unless by
            modules that say so (``inplace=True``).
    """

    def __init__(self, backbone: nn.Module):
        self.backbone = backbone
        self.product_bytes = 0
        # A result that is changed in place cannot be kept.
        self.may_keep = not any(getattr(module, "inplace", False) for module in backbone.modules())

    def checkpoint(self, piece: Callable[[Tensor], Tensor], part: Tensor) -> Tensor:
        """The piece's value; in the backward pass it is computed again."""
        return checkpoint(piece, part, use_reentrant=False, context_fn=self._contexts)

    def _contexts(self) -> tuple[AbstractContextManager, AbstractContextManager]:
        """Of the first pass through a piece, and of the second."""
        first, second = nullcontext(), nullcontext()
        if self.may_keep and self.product_bytes < MAX_PRODUCT_BYTES:
            first, second = create_selective_checkpoint_contexts(self._policy)
        return first, SecondPass(self.backbone, second)

    def _policy(self, context: Any, operation: object, *arguments: Any, **_options: object) -> CheckpointPolicy:
        result = getattr(context, "op_output", None)  # older versions of torch do not tell, and keep nothing
        if result is None or multiplications(operation, *arguments) < COSTLY:
            return CheckpointPolicy.PREFER_RECOMPUTE
        self.product_bytes += result.nbytes
        return CheckpointPolicy.MUST_SAVE


class SecondPass(AbstractContextManager):
    """A second pass through a piece, in which batch statistics are not counted a second time. Can be used repeatedly.

    Args:
        backbone: whose statistics.
        inner: another context of that pass.
    """

    def __init__(self, backbone: nn.Module, inner: AbstractContextManager):
        self.norms = [m for m in backbone.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
        self.inner = inner

    def __enter__(self) -> None:
        """Let statistics stand still."""
        counted = [(norm, norm.num_batches_tracked) for norm in self.norms]
        self.before = [(norm, norm.momentum, count) for norm, count in counted if count is not None]
        for norm, _, count in self.before:
            norm.momentum, norm.num_batches_tracked = 0.0, count.clone()
        self.inner.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        """As it was."""
        for norm, momentum, count in self.before:
            norm.momentum, norm.num_batches_tracked = momentum, count
        return self.inner.__exit__(*error)


def multiplications(operation: object, *arguments: Any) -> int:
    """How many it takes for an entry of the result; 0 for all but convolutions and matrix products."""
    match operation:
        case torch.ops.aten.convolution.default:
            return arguments[1][0].numel()  # weight (out, in, …)
        case torch.ops.aten.addmm.default:
            return arguments[1].shape[-1]
        case torch.ops.aten.mm.default | torch.ops.aten.bmm.default:
            return arguments[0].shape[-1]
        case _:
            return 0
