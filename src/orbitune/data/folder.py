"""Images in folders: one sub-folder per class, or train/ and test/ with such sub-folders."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from orbitune.data.arrays import from_arrays
from orbitune.data.dataset import ImageDataset
from orbitune.errors import DataError

log = logging.getLogger(__name__)

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")

Size = tuple[int, int]
"""Height and width."""


def load_folder(root: Path, *, resize: Size | None = None) -> ImageDataset:
    """Load images from ``root/<class>/`` or from ``root/train/<class>/`` and, if present, ``root/test/<class>/``.

    Classes are the names of the folders, sorted (as numbers, if they all are numbers); images may lie deeper within
    them. Sides are turned as the camera says (EXIF), transparent parts become white, 16-bit grey levels are rounded
    to 8 bits. If any image has colour, all get three channels; else all have one.

    Args:
        root: the folder.
        resize: (H, W) to bring all images to; needed if they differ in size.
    """
    has_splits = (root / "train").is_dir()
    train = _class_folders(root / "train" if has_splits else root)
    test = _class_folders(root / "test") if has_splits and (root / "test").is_dir() else {}
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
    images = _unified([_read_image(path, resize) for path in files + test_files], files + test_files)
    return from_arrays(
        images[: len(files)],
        labels,
        images[len(files) :] if test_files else None,
        test_labels if test_files else None,
        name=root.resolve().name,
        class_names=class_names,
        layout="NHWC",
    )


def _class_folders(folder: Path) -> dict[str, Path]:
    # Hidden folders are made by tools, not by people who sort images.
    folders = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))]
    if len(folders) < 2:
        found = f"only {folders[0].name}/" if folders else "no sub-folder"
        raise DataError(
            f"{folder} has {found}; expected one sub-folder per class, at least two, with images in them "
            f"({', '.join(SUFFIXES)}), or train/ and test/ with such sub-folders"
        )
    by_number = all(path.name.isdecimal() for path in folders)
    return {path.name: path for path in sorted(folders, key=lambda p: (int(p.name) if by_number else 0, p.name))}


def _image_files(folder: Path) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    images = sorted(path for path in files if path.suffix.lower() in SUFFIXES)
    if len(images) < len(files):
        log.warning("%s: %d files that are no images are left out", folder, len(files) - len(images))
    return images


def _listing(folders: dict[str, Path], class_names: Sequence[str]) -> tuple[list[Path], list[int]]:
    pairs = [(file, class_names.index(name)) for name, folder in folders.items() for file in _image_files(folder)]
    return [file for file, _ in pairs], [label for _, label in pairs]


def _read_image(path: Path, resize: Size | None) -> np.ndarray:
    """Pixels as uint8: (H, W) if grey, (H, W, 3) if coloured."""
    try:
        with Image.open(path) as opened:
            image = eight_bits(ImageOps.exif_transpose(opened))
            if resize is not None:
                image = image.resize((resize[1], resize[0]), Image.Resampling.BILINEAR)
            return np.asarray(image)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        reason = "no image format that Pillow knows" if isinstance(error, Image.UnidentifiedImageError) else error
        raise DataError(f"cannot read the image {path}: {reason}. Remove the file, or save it anew") from error


def eight_bits(image: Image.Image) -> Image.Image:
    """The image in mode L or RGB."""
    if image.mode.startswith("I"):  # 16 bits, in Pillow's I;16 or, from some formats, in its 32-bit I
        levels = np.asarray(image)
        if levels.min() < 0 or levels.max() > 65535:
            raise ValueError("it has 32-bit grey levels, of which we cannot know the scale; expected 8 or 16 bits")
        return Image.fromarray((levels / 257).round().astype(np.uint8))
    if image.mode == "F":
        raise ValueError("it has floating-point pixels, of which we cannot know the scale; expected 8 or 16 bits")
    mode = "L" if image.mode in ("1", "L", "LA") else "RGB"
    if image.has_transparency_data:
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image.convert("RGBA"))
    return image.convert(mode)


def _unified(images: list[np.ndarray], paths: list[Path]) -> np.ndarray:
    """All images as one array (N, H, W, 1) or (N, H, W, 3)."""
    sizes = {}
    for image, path in zip(images, paths, strict=True):
        sizes.setdefault(image.shape[:2], path)
    if len(sizes) > 1:
        examples = "; ".join(f"{height}×{width} ({path})" for (height, width), path in list(sizes.items())[:3])
        raise DataError(
            f"the images have {len(sizes)} different sizes, height×width: {examples}. Expected one size for all: "
            f"resize the files, or load them in Python with load_dataset(…, resize=(height, width))"
        )
    if all(image.ndim == 2 for image in images):
        return np.stack(images)[..., None]
    return np.stack([image if image.ndim == 3 else np.stack([image] * 3, axis=-1) for image in images])
