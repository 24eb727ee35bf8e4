"""Image files: which files are images, and their pixels."""

import logging
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from orbitune.data.allocation import allocate
from orbitune.errors import DataError

log = logging.getLogger(__name__)

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")

FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "WEBP")  # a suffix is only a claim, and Pillow reads stranger things

_ORIENTATION = 0x0112  # in EXIF
_TURN = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

Size = tuple[int, int]
"""Height and width."""


def images_among(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Those that are images, sorted; that there are others in the folder is mentioned."""
    files = [path for path in paths if path.is_file() and not is_hidden(path.relative_to(folder))]
    images = sorted(path for path in files if path.suffix.lower() in SUFFIXES)
    if len(images) < len(files):
        log.warning("%s: %d files that are no images are left out", folder, len(files) - len(images))
    return images


def is_hidden(path: Path) -> bool:
    """Whether a tool made the file or a folder it lies in, and not a person who sorts images."""
    return any(part.startswith((".", "__")) for part in path.parts)


def read_images(paths: Sequence[Path], resize: Size | None) -> np.ndarray:
    """All images as one array of bytes (N, 1, H, W) or, if any has colour, (N, 3, H, W)."""
    sizes: dict[Size, Path] = {}
    coloured = False
    for path in paths:  # only the headers: what they are decides how much room is needed
        with _opened(path) as image:
            sides = (image.height, image.width)
            sizes.setdefault(sides[::-1] if _orientation(image) >= 5 else sides, path)  # lying on its side
            coloured = coloured or mode_of(image) == "RGB"
    if resize is None and len(sizes) > 1:
        examples = "; ".join(f"{height}×{width} ({path})" for (height, width), path in list(sizes.items())[:3])
        raise DataError(
            f"the images have {len(sizes)} different sizes, height×width: {examples}. Expected one size for all: "
            f"bring them to one, say 64×64, with --resize 64 (in Python load_dataset(…, resize=64), in the app a side)"
        )
    height, width = resize or next(iter(sizes))
    pixels = allocate((len(paths), 3 if coloured else 1, height, width))
    brightest = 0  # of 16-bit levels
    for row, path in zip(pixels, paths, strict=True):
        with _opened(path) as opened:
            if opened.mode.startswith("I"):
                brightest = max(brightest, int(np.asarray(opened).max()))
            image = eight_bits(upright(opened))
            image = image if resize is None else image.resize((width, height), Image.Resampling.BILINEAR)
            row[...] = np.atleast_3d(np.asarray(image)).transpose(2, 0, 1)  # a grey one fills all channels
    if 0 < brightest < 4096:
        log.warning(
            "the 16-bit images reach a level of %d out of 65535, and so are nearly black: if their scale is another "
            "one, give them as floats in [0, 1]",
            brightest,
        )
    return pixels


def upright(image: Image.Image) -> Image.Image:
    """The image as its camera was held; without Pillow's exif_transpose, which trips over odd entries."""
    method = _TURN.get(_orientation(image))
    return image if method is None else image.transpose(method)


def _orientation(image: Image.Image) -> int:
    # The method of the base class: those of some formats decode the whole image first.
    value = Image.Image.getexif(image).get(_ORIENTATION, 1)
    return value if value in _TURN else 1


@contextmanager
def _opened(path: Path) -> Generator[Image.Image]:
    """An image file, and an error with its name for whatever goes wrong with it."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            yield image
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        reason = "no image format that Pillow knows" if isinstance(error, Image.UnidentifiedImageError) else error
        raise DataError(f"cannot read the image {path}: {reason}. Remove the file, or save it anew") from error


def mode_of(image: Image.Image) -> Literal["L", "RGB"]:
    """Grey or coloured, by its format."""
    return "L" if image.mode in ("1", "L", "LA", "F") or image.mode.startswith("I") else "RGB"


def eight_bits(image: Image.Image) -> Image.Image:
    """The image in mode L or RGB."""
    if image.mode.startswith("I"):  # 16 bits, in Pillow's I;16 or, from some formats, in its 32-bit I
        levels = np.asarray(image)
        if levels.min() < 0 or levels.max() > 65535:
            raise ValueError("it has 32-bit grey levels, of which we cannot know the scale; expected 8 or 16 bits")
        return Image.fromarray((levels / 257).round().astype(np.uint8))
    if image.mode == "F":
        raise ValueError("it has floating-point pixels, of which we cannot know the scale; expected 8 or 16 bits")
    mode = mode_of(image)
    if image.has_transparency_data:
        paper = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(paper, image.convert("RGBA"))
    return image.convert(mode)
