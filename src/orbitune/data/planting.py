"""Images with an invariance we know, because we put it there."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.data.dataset import ImageDataset
from orbitune.orbits.affine import AffineOrbit
from orbitune.orbits.warp import Padding

_CHUNK = 256  # images warped at a time: their grids fit in the cache, which halves the time


@torch.no_grad()
def plant(
    images: Float[Tensor, "N Ch H W"],
    ranges: Mapping[str, tuple[float, float]],
    generator: torch.Generator | None = None,
    *,
    padding: Padding = "zeros",
) -> Float[Tensor, "N Ch H W"]:
    """Transform every image (N, Ch, H, W) once, by a draw from the given ranges; the rest stays at zero.

    Convention:
        Names, units and signs are those of :class:`orbitune.orbits.AffineOrbit`; what is planted is what a
        faultless learner would report.
    """
    # Drawn in single precision whatever torch's default is: the same seed plants the same angles everywhere.
    orbit = AffineOrbit(ranges, learn=(), padding=padding).to(torch.float32)
    params = orbit.sample_params(len(images), 1, generator).to(images)  # (N, 1, P)
    chunks = zip(images.split(_CHUNK), params.split(_CHUNK), strict=True)
    planted = torch.cat([orbit.transform(x, nu)[:, 0] for x, nu in chunks])
    # A rounding error of the interpolation must not lead out of [0, 1].
    low, high = images.aminmax()
    return planted.clamp_(low.clamp(max=0), high.clamp(min=0))


def plant_dataset(
    dataset: ImageDataset, ranges: Mapping[str, tuple[float, float]], generator: torch.Generator | None = None
) -> ImageDataset:
    """Plant the ranges in all training and test images, each with its own draw; the ``note`` lists them."""
    planted = ", ".join(f"{name} in [{low:.4g}, {high:.4g}]" for name, (low, high) in ranges.items()) or "nothing"
    return replace(
        dataset,
        x_train=plant(dataset.images("train"), ranges, generator),
        x_test=None if dataset.x_test is None else plant(dataset.images("test"), ranges, generator),
        note="; ".join(filter(None, (dataset.note, f"planted: {planted}"))),
    )
