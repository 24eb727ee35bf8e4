"""Max-pooling over windows of 2×2 that is quick on processors and keeps little for the backward pass."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

max_pool, max_pool_backward = torch.ops.aten.max_pool2d_with_indices, torch.ops.aten.max_pool2d_with_indices_backward


class MaxPool2x2(nn.Module):
    """The same function as ``nn.MaxPool2d(2)``, for ordinary autograd (not ``torch.func``) and exports.

    PyTorch's own visits entries one by one on a CPU, and keeps its input and an integer of eight bytes per window for
    the backward pass. Here two maxima of neighbours, which are vectorised, replace it where no gradient is needed;
    where one is, winners are kept in two bytes, and the input not at all.
    """

    def forward(self, x: Float[Tensor, "N Ch H W"]) -> Float[Tensor, "N Ch H2 W2"]:
        """Pool; an odd last row or column is left out."""
        if x.device.type != "cpu" or torch.compiler.is_compiling():
            return nn.functional.max_pool2d(x, 2)
        height, width = x.shape[-2:]
        if (x.requires_grad and torch.is_grad_enabled()) or min(height, width) < 2:  # too small: PyTorch says so
            return _MaxPool2x2.apply(x)
        x = x[..., : height - height % 2, : width - width % 2]
        columns = torch.maximum(x[..., 0::2], x[..., 1::2])
        return torch.maximum(columns[..., 0::2, :], columns[..., 1::2, :])


class _MaxPool2x2(torch.autograd.Function):
    """PyTorch's own, but for what it keeps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result, winners = max_pool(x, 2)
        few = x.shape[-2] * x.shape[-1] <= torch.iinfo(torch.int16).max
        ctx.save_for_backward(winners.to(torch.int16 if few else torch.int32))
        ctx.shape, ctx.is_channels_last = x.shape, x.is_contiguous(memory_format=torch.channels_last)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,), (winners,) = gradients, ctx.saved_tensors
        memory_format = torch.channels_last if ctx.is_channels_last else torch.contiguous_format
        # Only the shape of what was pooled plays a part.
        pooled = torch.empty(ctx.shape, dtype=gradient.dtype, memory_format=memory_format)
        return max_pool_backward(gradient, pooled, [2, 2], [2, 2], [0, 0], [1, 1], False, winners.long())
