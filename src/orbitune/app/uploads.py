"""Data to learn from: a zip that the browser sends, or something that lies on this machine."""

import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from orbitune.app.archives import unpack_images
from orbitune.app.refusal import Refused
from orbitune.data import ImageDataset, load_dataset
from orbitune.data.catalog import CATALOG
from orbitune.errors import OrbituneError

UPLOADS = "uploads"


def receive_zip(content: io.RawIOBase | io.BytesIO, name: str, side: int | None, work: Path) -> dict[str, Any]:
    """Unpack a zip of class folders under ``work`` and look at the images.

    Args:
        content: the zip file.
        name: what its sender calls it.
        side: bring all images to side × side pixels; None takes them as they are.
        work: a new directory is made in its uploads/.

    Returns:
        ``data``, the path to learn from, and ``about``, a sentence.
    """
    folder = new_directory(work / UPLOADS, Path(name).stem)
    try:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".zip") as file:
            shutil.copyfileobj(content, file)
            file.flush()
            data = unpack_images(Path(file.name), folder / "images")
        dataset = load_dataset(data, resize=side)
        if side is not None:
            data = folder / "images.npz"
            _write_npz(data, dataset)
            shutil.rmtree(folder / "images")
    except (OrbituneError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OrbituneError) and not isinstance(
            error, Refused
        ):  # about files by the names of the sender
            unpacked = str(folder / "images")
            raise Refused(str(error).replace(f"{unpacked}/", "").replace(unpacked, name)) from error
        raise
    return {"data": str(data), "about": about(dataset)}


def check_source(data: object) -> str:
    """What ``orbitune fit`` is to learn from: a known name, or the absolute path of something that can be loaded."""
    if not isinstance(data, str) or not data.strip():
        raise Refused("choose what to learn from: a known data set, a zip, or a path on this machine")
    data = data.strip()
    name = data.lower().replace("_", "-")
    if name in CATALOG:
        if CATALOG[name].find() is None:
            load_dataset(name)  # raises, and says how to get it
        return name
    load_dataset(data)
    return str(Path(data).expanduser().resolve())


def about(dataset: ImageDataset) -> str:
    """How many images of what, in a sentence."""
    channels, height, width = dataset.image_shape
    total = dataset.num_train + dataset.num_test
    kind = "grey" if channels == 1 else "colour"
    names = ", ".join(dataset.class_names[:5]) + (", …" if dataset.num_classes > 5 else "")
    return f"{total:,} {kind} images of {width} × {height} pixels in {dataset.num_classes} classes: {names}."


def new_directory(parent: Path, wish: str) -> Path:
    """A directory that did not exist before, called after a wish as far as that is a good name: photos-1, photos-2."""
    stem = "".join(c if c.isalnum() or c in "-_" else "-" for c in wish)[:40].strip("-") or "data"
    parent.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        try:
            (parent / f"{stem}-{number}").mkdir()
            return parent / f"{stem}-{number}"
        except FileExistsError:
            number += 1


def _write_npz(path: Path, dataset: ImageDataset) -> None:
    arrays = {
        "x_train": dataset.x_train,
        "y_train": dataset.y_train,
        "x_test": dataset.x_test,
        "y_test": dataset.y_test,
    }
    present = {key: array.numpy() for key, array in arrays.items() if array is not None}
    np.savez(path, class_names=np.array(dataset.class_names), **present)
