"""What is learned from: a tensor, or images that stay where they are stored until a minibatch of them is needed."""

from collections.abc import Iterator

import torch
from jaxtyping import Float32, Int64, Shaped
from torch import Tensor


class StoredImages:
    """Images as they came, bytes or float32, perhaps in a file; float32 in [0, 1] of those that are asked for.

    Has what learners and models use of a float tensor (N, Ch, H, W): its length and shape, ``[index]`` and ``split``.

    Args:
        pixels: all images. A memory-mapped tensor is read where it is touched, and nowhere else.
        index: which of them, in which order; by default all.
    """

    dtype = torch.float32

    def __init__(self, pixels: Shaped[Tensor, "M Ch H W"], index: Int64[Tensor, " N"] | None = None):
        self.pixels = pixels
        self.index = torch.arange(len(pixels)) if index is None else index

    def __len__(self) -> int:
        return len(self.index)

    @property
    def shape(self) -> torch.Size:
        """(N, Ch, H, W)."""
        return torch.Size((len(self), *self.pixels.shape[1:]))

    @property
    def ndim(self) -> int:
        """Four."""
        return self.pixels.ndim

    @property
    def device(self) -> torch.device:
        """Where the pixels are."""
        return self.pixels.device

    def __getitem__(self, index: Int64[Tensor, " B"] | slice) -> Float32[Tensor, "B Ch H W"]:
        return as_float(self.pixels[self.index[index]])

    def split(self, size: int) -> Iterator[Float32[Tensor, "B Ch H W"]]:
        """All images, so many at a time."""
        return (self[start : start + size] for start in range(0, len(self), size))

    def take(self, index: Int64[Tensor, " B"] | slice) -> "StoredImages":
        """Some of them, not yet read."""
        return StoredImages(self.pixels, self.index[index])


Inputs = Tensor | StoredImages


def take(inputs: Inputs, index: Int64[Tensor, " B"] | slice) -> Inputs:
    """A part of the inputs; images that are stored stay where they are."""
    return inputs.take(index) if isinstance(inputs, StoredImages) else inputs[index]


def as_float(pixels: Shaped[Tensor, "N Ch H W"]) -> Float32[Tensor, "N Ch H W"]:
    """Pixels as float32 in [0, 1], bytes divided by 255."""
    return pixels.to(torch.float32) / 255 if pixels.dtype == torch.uint8 else pixels
