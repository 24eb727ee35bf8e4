"""A labelled set of images, checked once, when it is made."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float32, Int64, Shaped
from torch import Tensor

from orbitune.data.allocation import allocate
from orbitune.errors import DataError, unknown_name
from orbitune.inputs import StoredImages, as_float
from orbitune.random import permutation

Split = Literal["train", "test"]

_CHUNK = 4096  # images resized at a time


@dataclass(frozen=True, eq=False, repr=False)
class ImageDataset:
    """Images with class labels, to train on and, if there are any, to test on.

    Pixels are stored as they came: bytes where the source has bytes (PCam takes 7 GB instead of 29), float32 where a
    user or an interpolation made floats, which are then never rounded. :meth:`images` returns float32 of either.
    To make one from your own arrays, in any layout and with any labels, use :func:`orbitune.data.from_arrays`.

    Args:
        name: for people and for run records.
        x_train: (N, Ch, H, W), uint8 or float32 in [0, 1].
        y_train: (N,), the class of each image as an index into ``class_names``; at least two classes occur.
        x_test: (T, Ch, H, W) or None.
        y_test: (T,) or None.
        class_names: one name per class.
        note: what a reader of results must know about these images ("regenerated", "not the official split", …).
    """

    name: str
    # Bare tensors: users make these, so __post_init__ checks shapes and types, always, and says what to do.
    x_train: Tensor
    y_train: Tensor
    x_test: Tensor | None
    y_test: Tensor | None
    class_names: tuple[str, ...]
    note: str = ""

    def __post_init__(self) -> None:
        _check_split(f"{self.name}, train", self.x_train, self.y_train, self.num_classes)
        if len(set(self.class_names)) != self.num_classes:
            raise DataError(f"{self.name}: expected different class names, got {', '.join(self.class_names)}")
        if len(self.y_train.unique()) < 2:
            only = self.class_names[int(self.y_train[0])]
            raise DataError(
                f"{self.name}: all {len(self.y_train)} training images have the class {only!r}; expected at least two "
                f"classes. With one class there is nothing to tell apart: check how the labels were read"
            )
        if self.x_test is None or self.y_test is None:
            if self.x_test is not self.y_test:
                given, lacking = ("y_test", "x_test") if self.x_test is None else ("x_test", "y_test")
                raise DataError(f"{self.name}: got {given} without {lacking}; give both, or neither")
            return
        _check_split(f"{self.name}, test", self.x_test, self.y_test, self.num_classes)
        if self.x_test.shape[1:] != self.x_train.shape[1:]:
            raise DataError(
                f"{self.name}: test images of shape {tuple(self.x_test.shape[1:])} (Ch, H, W), but training images of "
                f"shape {tuple(self.x_train.shape[1:])}; expected the same"
            )

    def __repr__(self) -> str:
        channels, height, width = self.image_shape
        return (
            f"ImageDataset({self.name!r}: {self.num_train:,} train, {self.num_test:,} test images of "
            f"{channels}×{height}×{width}, {self.num_classes} classes{'; ' + self.note if self.note else ''})"
        )

    @property
    def num_classes(self) -> int:
        """C, the number of classes."""
        return len(self.class_names)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(Ch, H, W)."""
        channels, height, width = self.x_train.shape[1:]
        return channels, height, width

    @property
    def num_train(self) -> int:
        """N, the number of training images."""
        return len(self.y_train)

    @property
    def num_test(self) -> int:
        """T, the number of test images; 0 without a test set."""
        return 0 if self.y_test is None else len(self.y_test)

    def images(
        self, split: Split = "train", index: Int64[Tensor, " B"] | slice = slice(None)
    ) -> Float32[Tensor, "B Ch H W"]:
        """The images of a split as float32 in [0, 1], all of them or those of ``index``: (B, Ch, H, W)."""
        return as_float(self._pixels(split)[index])

    def stored(self, split: Split = "train") -> StoredImages:
        """The images of a split, to be read when they are needed."""
        return StoredImages(self._pixels(split))

    def labels(self, split: Split = "train", index: Int64[Tensor, " B"] | slice = slice(None)) -> Int64[Tensor, " B"]:
        """The classes of a split, all of them or those of ``index``: (B,)."""
        self._pixels(split)
        labels = self.y_train if split == "train" else self.y_test
        assert labels is not None  # _pixels has raised
        return labels[index]

    def subset(
        self, num: int, generator: torch.Generator | None = None, *, num_test: int | None = None
    ) -> "ImageDataset":
        """A random choice of ``num`` training images (and ``num_test`` test images), balanced over the classes.

        The classes get the same number of images, up to one; a class with fewer gives all it has. The order of the
        images stays. By default all test images are kept.
        """
        train = balanced_choice(self.y_train, num, self.num_classes, f"{self.name}, train", generator)
        chosen = replace(self, x_train=self.x_train[train], y_train=self.y_train[train])
        if num_test is None:
            return chosen
        y_test = self.labels("test")
        test = balanced_choice(y_test, num_test, self.num_classes, f"{self.name}, test", generator)
        return replace(chosen, x_test=self._pixels("test")[test], y_test=y_test[test])

    def resized(self, height: int, width: int) -> "ImageDataset":
        """The same images at another size, by antialiased bilinear interpolation."""
        return replace(
            self,
            x_train=_resize(self.x_train, height, width),
            x_test=None if self.x_test is None else _resize(self.x_test, height, width),
        )

    def _pixels(self, split: Split) -> Shaped[Tensor, "N Ch H W"]:
        if split not in get_args(Split):
            raise unknown_name("split", split, get_args(Split))
        if split == "train":
            return self.x_train
        if self.x_test is None:
            raise DataError(
                f"{self.name} has no test images. Give some (x_test and y_test in an npz, a folder test/ beside "
                f"train/), or set some of the training images aside"
            )
        return self.x_test


def balanced_choice(
    labels: Int64[Tensor, " N"], num: int, num_classes: int, what: str, generator: torch.Generator | None
) -> Int64[Tensor, " num"]:
    """Indices of ``num`` images with as equal numbers of every class as there are images for, in ascending order."""
    if not num_classes <= num <= len(labels):
        raise DataError(
            f"{what}: cannot choose {num} images; expected at least one per class and at most all there are, "
            f"{num_classes} … {len(labels)}"
        )
    order = permutation(len(labels), generator, labels.device)
    # The r-th image of each class comes before the (r+1)-th of any: taking the first `num` deals the classes in turn.
    rank = torch.empty_like(labels)
    for label in range(num_classes):
        members = labels[order] == label
        rank[members] = torch.arange(int(members.sum()))
    return order[rank.argsort(stable=True)[:num]].sort().values


def _resize(pixels: Tensor, height: int, width: int) -> Tensor:
    dtype = np.uint8 if pixels.dtype == torch.uint8 else np.float32
    resized = torch.from_numpy(allocate((*pixels.shape[:2], height, width), dtype))
    for target, chunk in zip(resized.split(_CHUNK), pixels.split(_CHUNK), strict=True):
        target.copy_(torch.nn.functional.interpolate(chunk, (height, width), mode="bilinear", antialias=True))
    return resized if pixels.dtype == torch.uint8 else resized.clamp_(0, 1)


def _check_split(what: str, x: Tensor, y: Tensor, num_classes: int) -> None:
    if x.ndim != 4 or x.dtype not in (torch.uint8, torch.float32):
        raise DataError(
            f"{what}: expected images of shape (N, Ch, H, W) in uint8 or float32, got {x.dtype} of shape "
            f"{tuple(x.shape)}. orbitune.data.from_arrays converts other layouts and types"
        )
    if y.ndim != 1 or y.dtype != torch.int64 or len(y) != len(x):
        raise DataError(
            f"{what}: expected one int64 label for each of {len(x)} images, got {y.dtype} of shape {tuple(y.shape)}"
        )
    if x.numel() == 0:
        raise DataError(f"{what}: there are no images; got an array of shape {tuple(x.shape)}")
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= num_classes:
        raise DataError(f"{what}: labels must lie in 0 … {num_classes - 1}, got {low} … {high}")
    if x.dtype == torch.float32:
        _check_range(what, x)


def _check_range(what: str, x: Tensor) -> None:
    low, high = (float(bound) for bound in x.aminmax())
    if low >= 0 and high <= 1:
        return
    broken = int((~x.isfinite()).flatten(1).any(dim=1).sum())
    if broken:
        raise DataError(
            f"{what}: {broken} of {len(x)} images contain NaN or infinite pixels; expected numbers in [0, 1]. Leave "
            f"these images out, or fill the holes"
        )
    advice = "pass them as uint8, or divide them by 255" if low >= 0 and high <= 255 else "rescale them first"
    raise DataError(
        f"{what}: pixels range from {low:.4g} to {high:.4g}; floating-point images must lie in [0, 1]: {advice}. "
        f"Images that were standardised (mean 0, deviation 1) should be given as they were before"
    )
