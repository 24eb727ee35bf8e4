"""The small real data set inside the package, upright and rotated."""

import math
from dataclasses import replace
from pathlib import Path

import torch

from orbitune.data.dataset import ImageDataset
from orbitune.data.npz import load_npz
from orbitune.data.planting import plant_dataset

DIGITS_FILE = Path(__file__).with_name("digits.npz")


def load_digits() -> ImageDataset:
    """5,000 training and 1,000 test images of MNIST, 28×28, as many of each digit; part of this package.

    Chosen by ``scripts/make_digits.py``. Licence and attribution are in ``DIGITS_LICENSE.md`` beside the file.
    """
    return load_npz(DIGITS_FILE)


def rotated_digits(half_width: float = math.pi, *, seed: int = 0) -> ImageDataset:
    """The shipped digits, each turned by its own angle from U(−half_width, half_width), in radians."""
    upright = load_digits()
    generator = torch.Generator().manual_seed(seed)
    rotated = plant_dataset(upright, {"rotation": (-half_width, half_width)}, generator)
    return replace(rotated, name="rotated-digits")
