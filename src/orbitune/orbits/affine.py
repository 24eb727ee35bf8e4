"""The paper's affine augmentations of images: rotation, scale, shear and translation."""

import math
from collections.abc import Iterable, Mapping
from typing import ClassVar, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.errors import InputError, unknown_name
from orbitune.orbits.ranges import Parameterisation
from orbitune.orbits.uniform import UniformOrbit
from orbitune.orbits.warp import Padding, warp


class AffineOrbit(UniformOrbit):
    """Images under random affine maps with the seven parameters of the paper.

    Convention:
        The *content* of the image is scaled, then sheared in y, then in x, then rotated, then translated, about the
        image centre: T = Translate · Rotate · ShearX · ShearY · Scale. Zeros are the identity, exactly.

        - ``rotation`` [rad]: positive turns the content counter-clockwise as displayed (like ``numpy.rot90``).
        - ``log_scale_x``, ``log_scale_y``: content stretched by exp(·); positive enlarges.
        - ``shear_x``: x ← x + shear_x · y; ``shear_y``: y ← y + shear_y · x (y points down).
        - ``translate_x``, ``translate_y``: in units of half the image width / height; positive is right / down.

        Angles are angles in pixels, also for non-square images. See :func:`orbitune.orbits.warp.warp` for
        interpolation and padding.

    Args:
        ranges, learn, symmetric, parameterisation, start: see :class:`UniformOrbit`.
        padding: what lies outside the image: "zeros", "border" or "reflection".
    """

    names: ClassVar[tuple[str, ...]] = (
        "rotation",
        "log_scale_x",
        "log_scale_y",
        "shear_x",
        "shear_y",
        "translate_x",
        "translate_y",
    )
    limits: ClassVar[Mapping[str, float]] = {"rotation": math.pi}
    scales: ClassVar[Mapping[str, float]] = {"rotation": math.pi}
    units: ClassVar[tuple[str, ...]] = ("rad", "log", "log", "", "", "half widths", "half heights")

    def __init__(
        self,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        *,
        learn: Iterable[str] | None = None,
        symmetric: bool = False,
        parameterisation: Parameterisation = "direct",
        start: float = 0.05,
        padding: Padding = "zeros",
    ):
        super().__init__(ranges, learn=learn, symmetric=symmetric, parameterisation=parameterisation, start=start)
        if padding not in get_args(Padding):
            raise unknown_name("padding", padding, get_args(Padding))
        self.padding = padding

    def transform(
        self, inputs: Float[Tensor, "B *event"], params: Float[Tensor, "B S 7"]
    ) -> Float[Tensor, "B S *event"]:
        """Warp each image (B, Ch, H, W) with its S parameter vectors, in one interpolation call."""
        if inputs.ndim != 4 or not inputs.is_floating_point():
            raise InputError(
                f"AffineOrbit transforms floating-point images of shape (B, Ch, H, W); got {inputs.dtype} of shape "
                f"{tuple(inputs.shape)}. Grey images need a channel axis: images.unsqueeze(1)"
            )
        if params.shape[0] != inputs.shape[0] or params.shape[-1] != len(self.names):
            raise InputError(
                f"expected params of shape (B = {inputs.shape[0]}, S, P = {len(self.names)}), got {tuple(params.shape)}"
            )
        height, width = inputs.shape[-2:]
        return warp(inputs, pull_back(params, height, width), self.padding)


def pull_back(params: Float[Tensor, "B S 7"], height: int, width: int) -> Float[Tensor, "B S 2 3"]:
    """The inverse T⁻¹ = Scale⁻¹ · ShearY⁻¹ · ShearX⁻¹ · Rotate⁻¹ · Translate⁻¹ as [A | b], in centred pixels.

    Every factor is inverted in closed form, so the map exists for all parameter values.
    """
    rotation, log_scale_x, log_scale_y, shear_x, shear_y, translate_x, translate_y = params.unbind(-1)
    cos, sin = rotation.cos(), rotation.sin()
    # y points down, so turning content counter-clockwise by α reads from Rotate⁻¹ = [[cos, −sin], [sin, cos]].
    a00, a01, a10, a11 = cos, -sin, sin, cos
    a00, a01 = a00 - shear_x * a10, a01 - shear_x * a11
    a10, a11 = a10 - shear_y * a00, a11 - shear_y * a01
    inverse_scale_x, inverse_scale_y = (-log_scale_x).exp(), (-log_scale_y).exp()
    a00, a01 = inverse_scale_x * a00, inverse_scale_x * a01
    a10, a11 = inverse_scale_y * a10, inverse_scale_y * a11
    shift_x, shift_y = translate_x * (width / 2), translate_y * (height / 2)
    b0, b1 = -(a00 * shift_x + a01 * shift_y), -(a10 * shift_x + a11 * shift_y)
    return torch.stack((torch.stack((a00, a01, b0), dim=-1), torch.stack((a10, a11, b1), dim=-1)), dim=-2)
