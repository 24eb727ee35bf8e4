"""Images inside the page: as data, at a size that is sharp on screen and small in the file."""

import base64
import io

import numpy as np
from PIL import Image

_SIDE = 96  # pixels: shown at half of this or less, so that it is sharp on a dense screen
_GAP = 4


def data_uri(image: np.ndarray) -> str:
    """One image (Ch, H, W), bytes, as a data URI."""
    return _encode(_sized(image), photo=_is_photo(image))


def strip_uri(images: np.ndarray) -> str:
    """Images (S, Ch, H, W), bytes, side by side in one picture with gaps that are transparent or white."""
    photo = _is_photo(images[0])
    tiles = [_sized(image) for image in images]
    width, height = tiles[0].size
    sheet = Image.new("RGB" if photo else "RGBA", ((width + _GAP) * len(tiles) - _GAP, height), "white")
    if not photo:
        sheet.putalpha(0)
    for position, tile in enumerate(tiles):
        sheet.paste(tile, (position * (width + _GAP), 0))
    return _encode(sheet, photo)


def _is_photo(image: np.ndarray) -> bool:
    """Large colour images are kept as JPEG, which is ten times smaller; small or grey ones without loss."""
    return image.shape[0] >= 3 and max(image.shape[1:]) > 64


def _sized(image: np.ndarray) -> Image.Image:
    """Small images magnified by a whole number, so that pixels stay square; large ones reduced."""
    channels = image[:3] if image.shape[0] >= 3 else image[[0, 0, 0]]
    picture = Image.fromarray(np.ascontiguousarray(np.moveaxis(channels, 0, -1)))
    longest = max(picture.size)
    if longest <= _SIDE // 2:
        factor = _SIDE // longest
        return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)
    picture.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
    return picture


def _encode(picture: Image.Image, photo: bool) -> str:
    file = io.BytesIO()
    if photo:
        picture.save(file, "JPEG", quality=85)
    else:
        picture.quantize(256, method=Image.Quantize.FASTOCTREE).save(file, "PNG", optimize=True)
    kind = "jpeg" if photo else "png"
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
