"""One file over HTTP: continued where it broke off, and checked before it gets its name."""

import errno
import hashlib
import http.client
import logging
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orbitune.errors import DownloadError

log = logging.getLogger(__name__)

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes there so far, and their final number if it is known."""

BLOCK = 1 << 18
TIMEOUT = 30.0  # seconds without a byte
ATTEMPTS = 3  # failures in a row, without having come further, after which a server is given up
PAUSE = 1.0  # seconds after the first failure; doubled after each further one


@dataclass(frozen=True)
class RemoteFile:
    """A file on public servers, all of which have the same bytes."""

    name: str
    urls: tuple[str, ...]
    checksum: str
    """Algorithm and hexadecimal digest: ``sha256:…`` or ``md5:…``."""
    size: int | None = None
    gunzip: bool = False
    """Whether it is to be unpacked (and the packed file removed), because its reader cannot look inside."""


class _BrokenOffError(Exception):
    """Asking again may help."""


class _UnavailableError(Exception):
    """Asking this server again will not help."""


def download(file: RemoteFile, path: Path, progress: Progress | None = None) -> None:
    """Fetch a file to ``path`` by way of ``<path>.part``, which the next call continues if this one breaks off.

    ``path`` appears only when it is complete and has the right checksum. The servers are asked in turn.
    """
    part = path.with_name(path.name + ".part")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_space(file, part)
        problems = []
        for url in file.urls:
            problem = _try_server(url, file, part, progress)
            if problem is None:
                break
            problems.append(f"{url}: {problem}")
        else:
            kept = f" The {_size(part):,} bytes that arrived are kept: run again to continue." if _size(part) else ""
            raise DownloadError(
                f"could not fetch {file.name}. {'; '.join(problems)}.{kept} Are you online? You can also put the file "
                f"at {path} by hand"
            )
        found = checksum_of(part, file.checksum)
        if found != file.checksum:
            part.unlink()
            raise DownloadError(
                f"{file.name} arrived with the checksum {found}, expected {file.checksum}; it was deleted. Either it "
                f"was damaged on its way (run again), or {url} now has another file"
            )
        os.replace(part, path)


def checksum_of(path: Path, like: str) -> str:
    """The checksum of a file, by the algorithm of ``like``."""
    algorithm = like.partition(":")[0]
    with path.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"


def _try_server(url: str, file: RemoteFile, part: Path, progress: Progress | None) -> str | None:
    """What went wrong, or None if ``part`` is complete."""
    furthest, failures = _size(part), 0
    while True:
        try:
            _continue(url, file, part, progress)
            return None
        except _UnavailableError as error:
            return str(error)
        except _BrokenOffError as error:
            # "Further" than ever: a server that restarts and always breaks off at the same place must end this loop.
            failures = 1 if _size(part) > furthest else failures + 1
            furthest = max(furthest, _size(part))
            if failures == ATTEMPTS:
                return f"{error} ({ATTEMPTS} attempts)"
            log.info("%s: %s; trying again", url, error)
            time.sleep(PAUSE * 2 ** (failures - 1))


def _continue(url: str, file: RemoteFile, part: Path, progress: Progress | None) -> None:
    """Append what is missing to ``part``, or write it anew if the server cannot start in the middle."""
    start = _size(part)
    if file.size is not None and start >= file.size:
        return  # complete, but the last run ended before it could say so; the checksum decides
    try:
        response = _open(url, start)
    except _RangeBeyondEndError:
        return  # likewise
    with response:
        if response.status == http.HTTPStatus.PARTIAL_CONTENT:
            if not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
                part.unlink()
                raise _BrokenOffError(f"the server sent {response.headers.get('Content-Range')}, not from byte {start}")
        else:
            start = 0
        length = response.headers.get("Content-Length")
        total = file.size if length is None else start + int(length)
        if file.size not in (None, total):
            raise _UnavailableError(f"the server has a file of {total:,} bytes, expected {file.size:,}")
        done = start
        with part.open("ab" if start else "wb") as output:
            while block := _read_block(response):
                output.write(block)
                done += len(block)
                if progress is not None:
                    progress(file.name, done, total)
        if total is not None and done < total:
            raise _BrokenOffError(f"the connection closed after {done:,} of {total:,} bytes")


class _RangeBeyondEndError(Exception):
    """We have as many bytes as the server, or more."""


def _open(url: str, start: int) -> http.client.HTTPResponse:
    headers = {"User-Agent": "orbitune", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            raise _RangeBeyondEndError from error
        passing = error.code >= 500 or error.code in (408, 429)
        raise (_BrokenOffError if passing else _UnavailableError)(f"HTTP {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _BrokenOffError(str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenOffError(str(error) or type(error).__name__) from error


def _read_block(response: http.client.HTTPResponse) -> bytes:
    # Here and not around the loop, so that a failing network is not taken for a failing disk, nor the reverse.
    try:
        return response.read(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenOffError(str(error) or type(error).__name__) from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _check_space(file: RemoteFile, part: Path) -> None:
    missing = (file.size or 0) - _size(part)
    free = shutil.disk_usage(part.parent).free
    if missing > free:
        raise DownloadError(
            f"no room for {file.name}: {missing / 1e6:,.0f} MB are missing, {free / 1e6:,.0f} MB are free in "
            f"{part.parent}. Free some, or set ORBITUNE_DATA to a folder on another disk"
        )


@contextmanager
def disk_errors(path: Path) -> Generator[None]:
    """Say what to do when ``path`` cannot be written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
            reason, advice = "the disk is full", "Free some room"
        else:
            reason, advice = str(error), "Check that you may write there"
        raise DownloadError(
            f"could not write {path}: {reason}. {advice}, or set ORBITUNE_DATA to another folder. A download continues "
            f"where it ended"
        ) from error
