"""Images in folders: one sub-folder per class, or train/ and test/ with such sub-folders."""

import logging
from collections.abc import Sequence
from pathlib import Path

import torch

from orbitune.data.arrays import from_arrays
from orbitune.data.dataset import ImageDataset, Split
from orbitune.data.image_files import SUFFIXES, Size, images_among, is_hidden, read_images
from orbitune.errors import DataError
from orbitune.inputs import StoredImages

log = logging.getLogger(__name__)


def load_folder(root: Path, *, resize: Size | None = None) -> ImageDataset:
    """Load images from ``root/<class>/`` or from ``root/train/<class>/`` and, if present, ``root/test/<class>/``.

    Classes are the names of the folders, sorted (as numbers, if they all are numbers); images may lie deeper within
    them. Sides are turned as the camera says (EXIF), transparent parts become white, 16-bit grey levels are rounded
    to 8 bits. If any image has colour, all get three channels; else all have one.

    Args:
        root: the folder.
        resize: (H, W) to bring all images to; needed if they differ in size.
    """
    train, test = _splits(root)
    strangers = sorted(test.keys() - train.keys())
    if strangers:
        raise DataError(f"{root / 'test'} has the classes {', '.join(strangers)}, which {root / 'train'} has not")
    for name, folder in train.items():
        if not _image_files(folder):
            raise DataError(
                f"{folder} holds no images; expected some of the class {name!r} ({', '.join(SUFFIXES)}). Add images, "
                f"or remove the folder"
            )

    class_names = list(train)
    files, labels = _listing(train, class_names)
    test_files, test_labels = _listing(test, class_names)
    images = read_images(files + test_files, resize)
    return from_arrays(
        images[: len(files)],
        labels,
        images[len(files) :] if test_files else None,
        test_labels if test_files else None,
        name=root.resolve().name,
        class_names=class_names,
        layout="NCHW",
    )


def image_names(root: Path, split: Split) -> list[str]:
    """Where the images of a split lie within ``root``, in the order in which :func:`load_folder` has them."""
    train, test = _splits(root)
    files, _ = _listing(train if split == "train" else test, list(train))
    return [path.relative_to(root).as_posix() for path in files]


def load_images(path: Path, *, channels: int, resize: Size | None = None) -> tuple[StoredImages, list[str]]:
    """Images that nobody has sorted, and their names: one file, or those that lie directly in a folder.

    Args:
        path: the file or folder.
        channels: 1 or 3; grey images are given three channels where colour is expected, but never the other way round.
        resize: (H, W) to bring all images to; needed if they differ in size.
    """
    files = [path] if path.is_file() else images_among(list(path.iterdir()), path)
    if not files:
        raise DataError(f"{path} holds no images; expected some ({', '.join(SUFFIXES)}), or one sub-folder per class")
    images = read_images(files, resize)
    if images.shape[1] > channels:
        raise DataError(f"{path} has coloured images; expected grey ones, like those the model was trained on")
    pixels = torch.from_numpy(images).expand(-1, channels, -1, -1)
    return StoredImages(pixels), [file.name for file in files]


def is_unsorted(folder: Path) -> bool:
    """Whether images lie directly in a folder, and there are no sub-folders."""
    if not folder.is_dir():
        return False
    return not _sub_folders(folder) and any(path.suffix.lower() in SUFFIXES for path in folder.iterdir())


def _splits(root: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """The class folders of training and test images."""
    has_splits = (root / "train").is_dir()
    train = _class_folders(root / "train" if has_splits else root)
    return train, _class_folders(root / "test") if has_splits and (root / "test").is_dir() else {}


def _class_folders(folder: Path) -> dict[str, Path]:
    folders = _sub_folders(folder)
    if len(folders) < 2:
        found = f"only {folders[0].name}/" if folders else "no sub-folder"
        raise DataError(
            f"{folder} has {found}; expected one sub-folder per class, at least two, with images in them "
            f"({', '.join(SUFFIXES)}), or train/ and test/ with such sub-folders"
        )
    beside = [path for path in folder.iterdir() if path.is_file() and path.suffix.lower() in SUFFIXES]
    if beside:
        log.warning("%s: %d images beside the class folders are left out", folder, len(beside))
    by_number = all(path.name.isdecimal() for path in folders)
    return {path.name: path for path in sorted(folders, key=lambda p: (int(p.name) if by_number else 0, p.name))}


def _sub_folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir() and not is_hidden(path.relative_to(folder))]


def _image_files(folder: Path) -> list[Path]:
    return images_among(list(folder.rglob("*")), folder)


def _listing(folders: dict[str, Path], class_names: Sequence[str]) -> tuple[list[Path], list[int]]:
    pairs = [(file, class_names.index(name)) for name, folder in folders.items() for file in _image_files(folder)]
    return [file for file, _ in pairs], [label for _, label in pairs]
