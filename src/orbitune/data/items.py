"""Data sets that give one item at a time: PyTorch's, torchvision's, Hugging Face's."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from orbitune.data.allocation import allocate
from orbitune.data.arrays import channels_first, from_arrays, to_numpy
from orbitune.data.dataset import ImageDataset
from orbitune.data.image_files import Size, eight_bits
from orbitune.errors import DataError

IMAGE_KEYS, LABEL_KEYS = ("image", "img", "pixel_values"), ("label", "labels", "fine_label", "target")


Items = Any
"""A map-style data set (``len`` and items by number): ``torch.utils.data.Dataset``, ``datasets.Dataset``, a list."""


def from_items(
    train: Items,
    test: Items | None = None,
    *,
    image: str | int | None = None,
    label: str | int | None = None,
    resize: int | Size | None = None,
    name: str = "items",
    class_names: Sequence[str] | None = None,
) -> ImageDataset:
    """Make an :class:`ImageDataset` from anything with a length whose items are an image and a label.

    Every item is read once. Many of them go to a temporary file instead of memory (see
    :func:`~orbitune.data.allocation.allocate`), so that the set may be larger than that.

    Args:
        train: items (image, label), as PyTorch and torchvision have them, or mappings, as Hugging Face has them. An
            image is one of Pillow's, or an array (H, W), (H, W, Ch) or (Ch, H, W) of bytes, or of floats in [0, 1].
            Random augmentation should be off: what is read is kept.
        test: the same for the test set.
        image, label: key or position of either in an item; by default the first two, or the usual names.
        resize: side, or (H, W), that Pillow's images are brought to; needed if they differ in size.
        name: for people and for run records.
        class_names: one name per label; by default those that the data set knows (``features`` of Hugging Face,
            ``classes`` of torchvision), else the labels themselves.
    """
    size = (resize, resize) if isinstance(resize, int) else resize
    x, y = _read(train, image, label, size, f"{name}, train")
    x_test, y_test = (None, None) if test is None else _read(test, image, label, size, f"{name}, test")
    if class_names is None:
        class_names = _known_names(train, label, len({*y, *(y_test or ())}))
    y_test = None if y_test is None else np.array(y_test)
    return from_arrays(x, np.array(y), x_test, y_test, name=name, class_names=class_names, layout="NCHW")


def _read(
    items: Items, image: str | int | None, label: str | int | None, size: Size | None, what: str
) -> tuple[np.ndarray, list[Any]]:
    """Pixels (N, Ch, H, W) and labels."""
    try:
        num = len(items)
    except TypeError as error:
        raise DataError(
            f"{what}: {type(items).__name__} has no length; expected a data set with len() and items by number. "
            f"Put the items of one that can only be iterated into a list"
        ) from error
    if not num:
        raise DataError(f"{what}: there are no items")
    pixels, labels = np.empty(0), []
    for i in range(num):
        picture, target = _parts(items[i], image, label, f"{what}, item {i}")
        array = _as_array(picture, size, f"{what}, item {i}")  # (Ch, H, W)
        if i == 0:
            pixels = allocate((num, *array.shape), array.dtype)
        if array.shape != pixels.shape[1:] or array.dtype != pixels.dtype:
            raise DataError(
                f"{what}: item {i} is {array.dtype} of shape {array.shape} (Ch, H, W), item 0 {pixels.dtype} of shape "
                f"{pixels.shape[1:]}; expected all alike. Images of Pillow can be brought to one size with resize=, "
                f'and to one mode with image.convert("RGB")'
            )
        pixels[i] = array
        labels.append(target)
    return pixels, labels


def _parts(item: Any, image: str | int | None, label: str | int | None, what: str) -> tuple[Any, Any]:
    if isinstance(item, Mapping):
        image = image if image is not None else next((key for key in IMAGE_KEYS if key in item), None)
        label = label if label is not None else next((key for key in LABEL_KEYS if key in item), None)
        if image not in item or label not in item:
            raise DataError(
                f"{what} has the keys {', '.join(map(str, item))}; say which are the image and the label: "
                f'image="…", label="…"'
            )
        picture, target = item[image], item[label]
    else:
        try:
            picture, target = item[0 if image is None else image], item[1 if label is None else label]
        except (TypeError, IndexError, KeyError) as error:
            raise DataError(
                f"{what} is {type(item).__name__}; expected (image, label), or a mapping with both"
            ) from error
    if isinstance(target, Tensor | np.ndarray | np.generic):
        if math.prod(target.shape) != 1:
            raise DataError(f"{what}: expected one class as label, got an array of shape {tuple(target.shape)}")
        target = target.item()
    return picture, target


def _as_array(picture: Any, size: Size | None, what: str) -> np.ndarray:
    """One image as (Ch, H, W)."""
    if isinstance(picture, Image.Image):
        try:
            picture = eight_bits(picture)
        except ValueError as error:
            raise DataError(f"{what}: {error}") from error
        if size is not None:
            picture = picture.resize((size[1], size[0]), Image.Resampling.BILINEAR)
        return channels_first(np.atleast_3d(np.asarray(picture))[None], "NHWC", what)[0]
    if not isinstance(picture, Tensor | np.ndarray | list):
        raise DataError(f"{what}: expected an image of Pillow or an array, got {type(picture).__name__}")
    layout = "NCHW" if isinstance(picture, Tensor) else "auto"  # torch has channels first, always
    return channels_first(to_numpy(picture)[None], layout, what)[0]


def _known_names(items: Items, label: str | int | None, num_labels: int) -> list[str] | None:
    """Names of the classes, if the data set has them."""
    features = getattr(items, "features", None)
    if isinstance(features, Mapping):
        key = label if label is not None else next((key for key in LABEL_KEYS if key in features), None)
        names = getattr(features.get(key), "names", None)
    else:
        names = getattr(items, "classes", None)
    return [str(each) for each in names] if names is not None and len(names) >= num_labels else None
