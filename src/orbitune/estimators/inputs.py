"""What users of scikit-learn pass as X, as tensors: images in any usual layout, flat images, or vectors."""

import logging
import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitune.data.arrays import channels_first, to_numpy
from orbitune.errors import InputError

logger = logging.getLogger(__name__)
Shape = tuple[int, ...]


def as_rows(X: Any) -> tuple[Any, Shape | None]:
    """X with one row per input, as scikit-learn's checks want it, and the shape of an input if it had one."""
    if isinstance(X, Tensor) or not hasattr(X, "ndim"):
        X = to_numpy(X)
    if X.ndim < 3:
        return X, None
    return np.asarray(X).reshape(len(X), -1), tuple(X.shape[1:])


def shape_of_inputs(own: Shape | None, image_shape: Any, num_features: int) -> Shape | None:
    """The shape of an image, which X has itself or ``image_shape`` says; None for vectors."""
    if image_shape is None:
        side = math.isqrt(num_features)
        if own is None and side >= 8 and side**2 == num_features:
            logger.warning(
                "X has %d = %d×%d features and is read as vectors; if these are images, say image_shape=(%d, %d)",
                *(num_features, side, side, side, side),
            )
        return own
    try:
        shape = tuple(int(side) for side in image_shape)
    except (TypeError, ValueError):
        shape = ()
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise InputError(f"image_shape must be (H, W), (H, W, Ch) or (Ch, H, W), got {image_shape!r}")
    if own is not None and own != shape:
        raise InputError(
            f"image_shape={shape}, but X holds images of shape {own}; leave image_shape out, or correct it"
        )
    if math.prod(shape) != num_features:
        raise InputError(
            f"image_shape={shape} means {math.prod(shape)} features per image, but X has {num_features} features"
        )
    return shape


def to_inputs(rows: np.ndarray, shape: Shape | None, layout: Any) -> Float[Tensor, "N *event"]:
    """Checked rows as images (N, Ch, H, W) in single precision, or as vectors (N, D) in double precision."""
    if shape is None:
        return torch.tensor(rows, dtype=torch.float64)
    images = channels_first(rows.reshape(len(rows), *shape), layout, "X")
    return torch.tensor(np.ascontiguousarray(images), dtype=torch.float32)


class Rescale(nn.Module):
    """(x − shift) / scale, with constants from training inputs.

    It is the first layer of a network, not a step before the model: the orbit acts on inputs in the user's units.
    Images are divided by their largest absolute pixel (0 … 255, 0 … 16 and 0 … 1 are all the same, and zero, with which
    warps are padded, stays zero); vectors are standardised feature by feature.
    """

    shift: Tensor
    scale: Tensor

    def __init__(self, inputs: Float[Tensor, "N *event"]):
        super().__init__()
        images = inputs.ndim == 4
        shift = inputs.new_zeros(()) if images else inputs.mean(0)
        scale = inputs.abs().max() if images else inputs.std(0, correction=0)
        self.register_buffer("shift", shift)
        self.register_buffer("scale", torch.where(scale > 0, scale, torch.ones_like(scale)))

    def forward(self, inputs: Float[Tensor, "N *event"]) -> Float[Tensor, "N *event"]:
        """Rescaled inputs of the same shape."""
        return (inputs - self.shift) / self.scale
