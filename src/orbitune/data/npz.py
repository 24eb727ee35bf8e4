"""Data sets in one ``.npz`` file, in the layout of Keras."""

from collections.abc import Sequence
from pathlib import Path

from orbitune.data.arrays import from_arrays
from orbitune.data.dataset import ImageDataset
from orbitune.data.formats import read_npz


def load_npz(path: Path, *, name: str | None = None, class_names: Sequence[str] | None = None) -> ImageDataset:
    """Load ``x_train, y_train`` and, if present, ``x_test, y_test`` and ``class_names`` from an ``.npz`` file.

    Images and labels may have every layout and type that :func:`orbitune.data.from_arrays` takes.
    """
    arrays = read_npz(path, required=("x_train", "y_train"))
    if class_names is None and "class_names" in arrays:
        class_names = [str(c) for c in arrays["class_names"]]
    return from_arrays(
        arrays["x_train"],
        arrays["y_train"],
        arrays.get("x_test"),
        arrays.get("y_test"),
        name=name or path.stem,
        class_names=class_names,
    )
