"""Pieces of a network pass that the backward pass computes again, to save memory."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

MAX_KEPT_BYTES = 3 * 2**29
"""Activations of a pass up to which all are kept and nothing is computed again."""

MAX_PRODUCT_BYTES = 5 * 2**28
"""Otherwise, how much of the costly ones is kept; of the pieces beyond, everything is computed again."""

COSTLY = 64
"""Multiplications per entry from which a result is costly."""


def in_bounded_memory(piece: Callable[[Tensor], Tensor], parts: Sequence[Tensor], backbone: nn.Module) -> list[Tensor]:
    """The piece's values of all parts (of equal size), where the backward pass computes again what would not fit.

    What the first part keeps tells how much all of them would; it is itself always kept.
    """
    if len(parts) == 1:
        return [piece(parts[0])]
    kept = KeptBytes(backbone)
    with kept:
        first = piece(parts[0])
    if kept.total * len(parts) <= MAX_KEPT_BYTES:
        return [first, *map(piece, parts[1:])]
    recomputation = Recomputation(backbone)
    return [first, *(recomputation.checkpoint(piece, part) for part in parts[1:])]


class KeptBytes(torch.autograd.graph.saved_tensors_hooks):
    """How much memory is kept for the backward pass of what happens within, beside the weights of the backbone."""

    def __init__(self, backbone: nn.Module) -> None:
        self.counted = {parameter.untyped_storage().data_ptr() for parameter in backbone.parameters()}
        self.total = 0
        super().__init__(self._count, lambda tensor: tensor)

    def _count(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.counted:
            self.counted.add(storage.data_ptr())
            self.total += storage.nbytes()
        return tensor.detach()  # an output that keeps itself would never be freed without a backward pass


class Recomputation:
    """Checkpoints of the pieces of one pass.

    As long as there is room for them, results of costly operations are kept, and only the cheap ones (ReLU, pooling)
    are computed again.

    Args:
        backbone: what the pieces run; it must not change its input, or results of convolutions or matrix products, in
            place, unless by modules that say so (``inplace=True``).
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
    """How many it takes for an entry of the result; 0 for all but convolutions, matrix products and warps."""
    match operation:
        case torch.ops.aten.grid_sampler_2d.default:
            return COSTLY  # not so many, but with all that leads to its grid; and its result is one image
        case torch.ops.aten.convolution.default:
            return arguments[1][0].numel()  # weight (out, in, …)
        case torch.ops.aten.addmm.default:
            return arguments[1].shape[-1]
        case torch.ops.aten.mm.default | torch.ops.aten.bmm.default:
            return arguments[0].shape[-1]
        case _:
            return 0
