"""Data to learn from: a zip that the browser sends, or something that lies on this machine."""

import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

from orbitune.app.archives import unpack_images
from orbitune.app.refusal import Refused
from orbitune.data import ImageDataset, load_dataset
from orbitune.data.catalog import CATALOG, known_name
from orbitune.errors import OrbituneError

UPLOADS = "uploads"


def receive_zip(content: io.RawIOBase | io.BytesIO, name: str, side: int | None, work: Path) -> dict[str, Any]:
    """Unpack a zip of class folders under ``work`` and look at the images.

    Args:
        content: the zip file.
        name: what its sender calls it.
        side: the images will be brought to side × side pixels; None takes them as they are.
        work: a new directory is made in its uploads/.

    Returns:
        ``data``, the folder to learn from, and ``about``, a sentence.
    """
    folder = new_directory(work / UPLOADS, Path(name).stem)
    unpacked = folder / "images"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            shutil.copyfileobj(content, file)
            data = unpack_images(file, unpacked)
        return {"data": str(data), "about": about(load_dataset(data, resize=side))}
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OrbituneError) and not isinstance(error, Refused):  # files have the sender's names
            raise Refused(str(error).replace(f"{unpacked}/", "").replace(str(unpacked), name)) from error
        raise


def check_source(data: object, side: int | None = None) -> str:
    """What ``orbitune fit`` is to learn from: a known name, or the absolute path of something that can be loaded."""
    if not isinstance(data, str) or not data.strip():
        raise Refused("choose what to learn from: a known data set, a zip, or a path on this machine")
    data = data.strip()
    name = known_name(data)
    if name is not None:
        if CATALOG[name].find() is None:
            load_dataset(name)  # raises, and says how to get it
        return name
    load_dataset(data, resize=side)
    return str(Path(data).expanduser().resolve())


def checked_side(side: object) -> int | None:
    """A side in pixels to which images are brought, or None."""
    if side is not None and not (isinstance(side, int) and 4 <= side <= 512):
        raise Refused(f"images can be brought to a side of 4 to 512 pixels, not {side}")
    return side


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
