"""What users have in memory, numpy or torch, in any usual layout and with any labels, as an ImageDataset."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from orbitune.data.allocation import contiguous
from orbitune.data.dataset import ImageDataset
from orbitune.errors import DataError, unknown_name

Array = np.ndarray | Tensor
Labels = np.ndarray | Tensor | Sequence[object]
Layout = Literal["auto", "NCHW", "NHWC"]

_CHANNELS = (1, 3, 4)  # what "auto" takes for a channel axis


def from_arrays(
    x: Array,
    y: Labels,
    x_test: Array | None = None,
    y_test: Labels | None = None,
    *,
    name: str = "arrays",
    class_names: Sequence[str] | None = None,
    layout: Layout = "auto",
    note: str = "",
) -> ImageDataset:
    """Make an :class:`ImageDataset` from arrays.

    Args:
        x: images (N, H, W), (N, H, W, Ch) or (N, Ch, H, W). Integers are grey levels 0 … 255; floats must lie in
            [0, 1] and are rejected otherwise, since a guessed scale would be wrong silently; booleans are 0 and 1.
        y: (N,) or (N, 1) classes: integers, strings or booleans. Sorted, they become the indices 0 … C−1.
        x_test, y_test: the same for the test set; its classes must occur in ``y``.
        name, note: see :class:`ImageDataset`.
        class_names: if given, integer labels are indices into it and string labels are looked up in it.
        layout: where the channels of 4-dimensional images are; "auto" finds them if only one of the two axes
            has length 1, 3 or 4.
    """
    train = _label_array(y, f"{name}, train")
    test = None if y_test is None else _label_array(y_test, f"{name}, test")
    if class_names is None:
        # tolist: the classes as Python values, so that 3 is named "3" whatever its type was.
        classes = np.unique(train).tolist()
    else:
        classes = list(class_names) if train.dtype.kind == "U" else list(range(len(class_names)))
    return ImageDataset(
        name=name,
        x_train=_pixels(x, layout, f"{name}, train"),
        y_train=_encode(train, classes, f"{name}, train"),
        x_test=None if x_test is None else _pixels(x_test, layout, f"{name}, test"),
        y_test=None if test is None else _encode(test, classes, f"{name}, test"),
        class_names=tuple(str(c) for c in (classes if class_names is None else class_names)),
        note=note,
    )


def to_numpy(array: object) -> np.ndarray:
    """An array on the CPU, of anything that looks like one."""
    if isinstance(array, Tensor):
        array = array.detach().cpu()
        return (array.float() if array.dtype == torch.bfloat16 else array).numpy()
    return np.asarray(array)


def _pixels(x: Array, layout: Layout, what: str) -> Tensor:
    """Images as uint8 or float32 of shape (N, Ch, H, W); ranges of floats are checked by ImageDataset."""
    array = channels_first(to_numpy(x), layout, what)
    match array.dtype.kind:
        case "f" | "b":
            dtype = np.float32
        case "u" | "i":
            low, high = (int(array.min()), int(array.max())) if array.size else (0, 255)
            if low < 0 or high > 255:
                raise DataError(f"{what}: integer pixels must lie in 0 … 255, got {low} … {high}")
            if high <= 1:
                raise DataError(
                    f"{what}: integer pixels are read as grey levels 0 … 255, but the largest is {high}, so all images "
                    f"would be black. If 1 means white, pass booleans or floats"
                )
            dtype = np.uint8
        case _:
            raise DataError(f"{what}: pixels must be integers, floats or booleans, got an array of {array.dtype}")
    return torch.from_numpy(contiguous(array, dtype))


def channels_first(array: np.ndarray, layout: str, what: str) -> np.ndarray:
    """Images (N, H, W), (N, H, W, Ch) or (N, Ch, H, W) as (N, Ch, H, W); see :func:`from_arrays` for the layout."""
    if layout not in get_args(Layout):
        raise unknown_name("layout", layout, get_args(Layout))
    if array.ndim == 3:
        return array[:, None]
    if array.ndim != 4:
        advice = ". Flat images: x.reshape(-1, height, width)" if array.ndim == 2 else ""
        raise DataError(
            f"{what}: images must have shape (N, H, W), (N, H, W, Ch) or (N, Ch, H, W), got {array.shape}{advice}"
        )
    if layout == "auto":
        first, last = array.shape[1] in _CHANNELS, array.shape[3] in _CHANNELS
        if first == last:
            raise DataError(
                f"{what}: cannot tell which axis of {array.shape} holds the channels: "
                f"{'axes 1 and 3 both have' if first else 'neither axis 1 nor axis 3 has'} length 1, 3 or 4. "
                f"Say layout='NCHW' or layout='NHWC'"
            )
        layout = "NCHW" if first else "NHWC"
    return array if layout == "NCHW" else np.moveaxis(array, 3, 1)


def _label_array(y: Labels, what: str) -> np.ndarray:
    """Labels (N,) as int64 or as strings."""
    array = to_numpy(y)
    if array.ndim != 1 and array.size == len(array):
        array = array.reshape(-1)  # (N, 1) in Keras' CIFAR-10, (N, 1, 1, 1) in PCam
    if array.ndim != 1:
        raise DataError(f"{what}: labels must have shape (N,), got {array.shape}. One-hot labels: y.argmax(axis=1)")
    if array.dtype.kind == "O" and all(isinstance(value, str) for value in array):
        array = array.astype(str)
    match array.dtype.kind:
        case "b" | "i" | "u":
            return array.astype(np.int64)
        case "U":
            return array
        case "S":
            return np.char.decode(array, "utf-8")
        case "f" if np.isnan(array).any():
            raise DataError(f"{what}: {int(np.isnan(array).sum())} labels are NaN. Leave these images out")
        case "f" if (array == np.round(array)).all():
            return array.astype(np.int64)
        case "f":
            raise DataError(f"{what}: labels must be classes, got fractions such as {array[array % 1 != 0][0]}")
        case _:
            raise DataError(f"{what}: labels must be integers or strings, got an array of {array.dtype}")


def _encode(labels: np.ndarray, classes: list, what: str) -> Tensor:
    """Each label as its position in the list of classes."""
    position = {value: i for i, value in enumerate(classes)}
    strangers = sorted({value for value in labels.tolist() if value not in position}, key=str)
    if strangers:
        raise DataError(f"{what}: labels {_some(strangers)} are not among the classes, which are {_some(classes)}")
    return torch.tensor([position[value] for value in labels.tolist()], dtype=torch.int64)


def _some(values: list) -> str:
    return ", ".join(repr(v) for v in values[:10]) + (", …" if len(values) > 10 else "")
