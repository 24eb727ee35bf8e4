"""Bilinear interpolation of images along affine maps: all warps of an image in one call."""

from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.errors import unknown_name

Padding = Literal["zeros", "border", "reflection"]


def warp(
    images: Float[Tensor, "B Ch H W"], pull_back: Float[Tensor, "B S 2 3"], padding: Padding = "zeros"
) -> Float[Tensor, "B S Ch H W"]:
    """Sample x_a(p) = x(A p + b) for each of S maps (A, b) per image.

    Convention:
        p = (x, y) in pixels from the image centre, x to the right, y downwards; ``pull_back`` = [A | b] maps an
        output position to the input position it is read from. Interpolation is bilinear between pixel centres.
        Outside the image: "zeros", the nearest pixel ("border"), or the mirror image about the outer pixel edges
        ("reflection").
        The identity map returns the image bit for bit.
    """
    batch, channels, height, width = images.shape
    size = pull_back.shape[1]
    A = pull_back.to(images.dtype)[..., None, None]  # (B, S, 2, 3, 1, 1)
    x = torch.arange(width, device=images.device).to(images) - (width - 1) / 2  # (W,)
    y = torch.arange(height, device=images.device).to(images)[:, None] - (height - 1) / 2  # (H, 1)
    column = A[:, :, 0, 0] * x + A[:, :, 0, 1] * y + A[:, :, 0, 2] + (width - 1) / 2  # (B, S, H, W)
    row = A[:, :, 1, 0] * x + A[:, :, 1, 1] * y + A[:, :, 1, 2] + (height - 1) / 2
    column, row = _into_image(column, width, padding), _into_image(row, height, padding)

    # grid_sample wants positions in (−1, 1) and scales them back by the image size. On a canvas whose sides are
    # powers of two both scalings are exact in floating point, so whole pixels stay whole pixels.
    # The margin continues the padding, so that gradients at the last pixel look at the right neighbour.
    margin = 0 if padding == "zeros" else 1
    canvas_height, canvas_width = _next_power_of_two(height + margin), _next_power_of_two(width + margin)
    canvas = torch.nn.functional.pad(
        images,
        (0, canvas_width - width, 0, canvas_height - height),
        mode="constant" if padding == "zeros" else "replicate",
    )
    grid = torch.stack(((2 * column + 1) / canvas_width - 1, (2 * row + 1) / canvas_height - 1), dim=-1)
    # The S grids of an image are stacked along height: one call, no copies of the image.
    warped = torch.nn.functional.grid_sample(
        canvas, grid.reshape(batch, size * height, width, 2), padding_mode="zeros", align_corners=False
    )
    return warped.reshape(batch, channels, size, height, width).transpose(1, 2)


def _into_image(position: Tensor, length: int, padding: Padding) -> Tensor:
    match padding:
        case "zeros":
            return position
        case "border":
            return position.clamp(0, length - 1)
        case "reflection":
            # A triangle wave of period 2·length with its turning points at the outer pixel edges.
            mirrored = length - (length - (position + 0.5).remainder(2 * length)).abs() - 0.5
            return mirrored.clamp(0, length - 1)
        case _:
            raise unknown_name("padding", padding, get_args(Padding))


def _next_power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()
