"""A zip of images, unpacked without trusting it."""

import lzma
import shutil
import stat
import zipfile
import zlib
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import IO

from orbitune.app.refusal import Refused
from orbitune.data.image_files import SUFFIXES

MAX_ARCHIVE_BYTES = 500 * 2**20
MAX_UNPACKED_BYTES = 2 * 2**30
MAX_FILES = 100_000

_PIECE = 2**20
_DAMAGE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError, UnicodeDecodeError)


def unpack_images(
    archive: Path | IO[bytes], target: Path, max_bytes: int = MAX_UNPACKED_BYTES, max_files: int = MAX_FILES
) -> Path:
    """Unpack the images of a zip into a new directory; everything else in it is left out.

    Args:
        archive: the zip file.
        target: a directory that does not exist yet. If anything goes wrong, it will not exist afterwards either.
        max_bytes: limit of what comes out, counted while it does: sizes written in the zip are only claims.
        max_files: limit of the number of images.

    Returns:
        The directory in which the class folders lie: ``target``, or the only folder in it (photos.zip of photos/).
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            members = [member for member in opened.infolist() if _is_image(member)]
            paths = [_safe_path(member) for member in members]
            if len(members) > max_files:
                raise _too_large(f"it holds {len(members):,} images; at most {max_files:,} are taken")
            if not members:
                raise Refused(
                    f"there are no images in this zip; expected one folder per class with images in it "
                    f"({', '.join(SUFFIXES)})"
                )
            target.mkdir(parents=True)
            left = max_bytes
            for member, path in zip(members, paths, strict=True):
                left -= _extract(opened, member, target / path, left, max_bytes)
    except Exception as error:
        shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, _DAMAGE):
            raise Refused(f"this is not a zip file that can be read: {error}. Make it anew") from error
        raise
    return _innermost(target)


def _is_image(member: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(member.filename).parts
    hidden = any(part.startswith("__MACOSX") or (part.startswith(".") and part != "..") for part in parts)
    return not member.is_dir() and not hidden and member.filename.lower().endswith(SUFFIXES)


def _safe_path(member: zipfile.ZipInfo) -> Path:
    """Where a member goes, relative to the target; a path that leads elsewhere is refused."""
    name = member.filename
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name:
        raise Refused(f"the zip holds the path {name!r}, which leads out of its folder; nothing was unpacked")
    if stat.S_ISLNK(member.external_attr >> 16):
        raise Refused(f"the zip holds the link {name!r}; only files and folders are taken")
    if member.flag_bits & 0x1:
        raise Refused("the zip is encrypted; make one without a password")
    return Path(*path.parts)


def _extract(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, left: int, limit: int) -> int:
    """Write one file and return its size, if that is not more than what is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with archive.open(member) as source, path.open("wb") as output:
        while piece := source.read(_PIECE):
            size += len(piece)
            if size > left:
                raise _too_large(f"it unpacks to more than {limit / 2**20:,.0f} MB")
            output.write(piece)
    return size


def _innermost(folder: Path) -> Path:
    """Past folders that hold nothing but one folder, for as long as there is a folder in that."""
    inside = list(folder.iterdir())
    if len(inside) == 1 and inside[0].is_dir() and any(path.is_dir() for path in inside[0].iterdir()):
        return _innermost(inside[0])
    return folder


def _too_large(what: str) -> Refused:
    return Refused(
        f"the zip is too large: {what}. Give the path of the folder on this machine instead",
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    )
