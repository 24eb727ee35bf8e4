"""Where data sets are looked for on this machine."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from orbitune.data.dataset import ImageDataset

Reader = Callable[[Sequence[Path], int], ImageDataset]
"""Makes a data set from its files; the seed only matters to sets that are made by chance."""


@dataclass(frozen=True)
class Source:
    """The files of a data set that were found, and how to read them."""

    files: tuple[Path, ...]
    read: Reader

    def load(self, seed: int) -> ImageDataset:
        """Read the files."""
        return self.read(self.files, seed)


def data_dir() -> Path:
    """The folder of data sets: ``$ORBITUNE_DATA``, else :func:`cache_dir`. It need not exist."""
    if chosen := os.environ.get("ORBITUNE_DATA"):
        return Path(chosen).expanduser()
    return cache_dir()


def cache_dir() -> Path:
    """The folder ``orbitune`` in the user's cache, for what can be had again.

    The cache is ``$XDG_CACHE_HOME`` or ``~/.cache`` on Linux, ``~/Library/Caches`` on a Mac and ``%LOCALAPPDATA%`` on
    Windows. The folder need not exist.
    """
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache).expanduser() / "orbitune"


def find_together(folders: Sequence[str], names: Sequence[str], *, or_gz: bool = False) -> tuple[Path, ...] | None:
    """The files ``names`` in the first of ``folders`` (within the data directory) that has them all, or None.

    With ``or_gz``, a file may also have .gz at its end.
    """
    for folder in folders:
        found = []
        for name in names:
            candidates = [data_dir() / folder / name, data_dir() / folder / f"{name}.gz"][: 2 if or_gz else 1]
            found += [path for path in candidates if path.is_file()][:1]
        if len(found) == len(names):
            return tuple(found)
    return None
