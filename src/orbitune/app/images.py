"""Images on their way between browser and model."""

import base64
import binascii
import io

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image, ImageOps
from torch import Tensor

from orbitune.app.refusal import Refused
from orbitune.data.image_files import FORMATS, eight_bits, upright

MAX_PIXELS = 50_000_000
"""A file of a few bytes can claim to be a picture of terabytes; the largest cameras stay below this."""

_PREFIX = "data:image/png;base64,"


def read_upload(content: bytes, image_shape: tuple[int, int, int], *, squeeze: bool = False) -> Float[Tensor, "Ch H W"]:
    """The bytes of an image file, in any format that Pillow knows, as an image of the model's shape.

    It is scaled to cover the shape, and what sticks out on two sides is cut off, or it is squeezed into the shape; a
    file of that very size is not touched.
    """
    channels, height, width = image_shape
    try:
        with Image.open(io.BytesIO(content), formats=(*FORMATS, "GIF")) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise Refused(
                    f"the image has {opened.width} × {opened.height} pixels; at most {MAX_PIXELS // 10**6} million are "
                    "taken: make it smaller first"
                )
            picture = eight_bits(upright(opened)).convert("L" if channels == 1 else "RGB")
    except Image.UnidentifiedImageError as error:
        raise Refused("this is not an image in a format that Pillow knows: try a PNG or JPEG file") from error
    except Image.DecompressionBombError as error:
        raise Refused(f"this image is too large: {error}") from error
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise Refused(f"cannot read this image: {error}. Save it anew, as PNG or JPEG") from error
    if picture.size != (width, height):
        to_size = Image.Image.resize if squeeze else ImageOps.fit
        picture = to_size(picture, (width, height), Image.Resampling.BILINEAR)
    pixels = torch.from_numpy(np.array(picture)).to(torch.float32) / 255
    return pixels.reshape(height, width, channels).movedim(-1, 0)


def read_uri(uri: object, image_shape: tuple[int, int, int]) -> Float[Tensor, "Ch H W"]:
    """The image in a data URI, as :func:`png_uri` writes it."""
    if not isinstance(uri, str) or not uri.startswith(_PREFIX):
        raise Refused(f"expected an image as a text that begins with {_PREFIX}")
    try:
        content = base64.b64decode(uri.removeprefix(_PREFIX), validate=True)
    except binascii.Error as error:
        raise Refused(f"the image is not valid base64: {error}") from error
    return read_upload(content, image_shape)


def png_uri(image: Float[Tensor, "Ch H W"]) -> str:
    """An image of one or three channels, pixel by pixel, as a data URI."""
    levels = (image.clamp(0, 1) * 255).round().to(torch.uint8).movedim(0, -1).numpy()
    file = io.BytesIO()
    Image.fromarray(levels[..., 0] if levels.shape[-1] == 1 else levels).save(file, "PNG")
    return _PREFIX + base64.b64encode(file.getvalue()).decode()
