"""Readers of the file formats in which the official data sets come. None of them can run code from a file."""

import errno
import gzip
import importlib
import io
import math
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from orbitune.data import allocation
from orbitune.data.allocation import allocate
from orbitune.errors import DataError

_DAMAGE = (OSError, EOFError, KeyError, ValueError, zlib.error, tarfile.TarError, zipfile.BadZipFile, struct.error)


@contextmanager
def reading(path: Path, expected: str) -> Generator[None]:
    """Turn whatever a damaged file raises into an error that names the file and what it should have been."""
    try:
        yield
    except DataError:
        raise
    except _DAMAGE as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # not the file is too short, but the disk
            raise
        reason = str(error) or type(error).__name__
        raise DataError(
            f"cannot read {path}: {reason}. Expected {expected}. Likely the file is incomplete or is something else: "
            f"fetch or copy it again"
        ) from error


def read_idx(path: Path) -> np.ndarray:
    """An array of bytes in the IDX format of MNIST, gzipped (``.gz``) or not."""
    with reading(path, "an IDX file of unsigned bytes"):
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        zeros, kind, ndim = struct.unpack_from(">HBB", content)
        if zeros != 0 or kind != 0x08:
            raise ValueError(f"it starts with {content[:4].hex(' ')} instead of 00 00 08")
        shape = struct.unpack_from(f">{ndim}I", content, 4)
        start = 4 + 4 * ndim
        if len(content) - start != math.prod(shape):
            raise ValueError(
                f"its header promises {' × '.join(map(str, shape))} = {math.prod(shape)} bytes, but "
                f"{len(content) - start} follow"
            )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_amat(path: Path, member: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Images (N, 28, 28) and labels (N,) from the text format of Larochelle et al. (2007), or from one within a zip.

    Each line has the 784 pixels of an image and its label. Pixels are taken row by row, as other loaders take them.
    """
    with reading(path, "lines of 784 pixels and a label"):
        if member is None:
            table = np.loadtxt(path, dtype=np.float32, ndmin=2)
        else:
            with zipfile.ZipFile(path) as archive, archive.open(find_member(archive.namelist(), member)) as file:
                table = np.loadtxt(io.TextIOWrapper(file, "ascii"), dtype=np.float32, ndmin=2)
        if table.shape[1] != 785:
            raise ValueError(f"its lines have {table.shape[1]} numbers")
    # The last digits of the text may carry a pixel past 1.
    return table[:, :-1].reshape(-1, 28, 28).clip(0, 1), table[:, -1].astype(np.int64)


def find_member(names: list[str], wanted: str) -> str:
    """The full name of the member of an archive whose last part is ``wanted``."""
    for name in names:
        if name.rpartition("/")[2] == wanted:
            return name
    raise ValueError(f"there is no {wanted} in it, only {', '.join(names[:10])}")


def read_npz(path: Path, required: Sequence[str]) -> dict[str, np.ndarray]:
    """All arrays of an ``.npz`` file, without unpickling; those that are ``required`` must be among them."""
    # Opened here, because np.load leaves a file open that turns out to be no archive.
    with reading(path, "an .npz file of plain arrays (no Python objects)"), path.open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise ValueError("it is one array (.npy), not an archive of several")
        arrays = {key: _read_member(archive, key) for key in archive.files}
    missing = [key for key in required if key not in arrays]
    if missing:
        there = ", ".join(f"{key} {array.shape}" for key, array in arrays.items()) or "nothing"
        raise DataError(f"{path} has no {' and no '.join(missing)}; expected {', '.join(required)}, got {there}")
    return arrays


def _read_member(archive: np.lib.npyio.NpzFile, key: str) -> np.ndarray:
    """One array of an ``.npz`` file; from a temporary file if it is too large for the memory."""
    member = archive.zip.getinfo(f"{key}.npy" if f"{key}.npy" in archive.zip.NameToInfo else key)  # ty: ignore
    if member.file_size <= allocation.MAX_IN_MEMORY:
        return archive[key]
    with archive.zip.open(member) as packed:  # ty: ignore
        version = np.lib.format.read_magic(packed)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read_header(packed)
        if dtype.hasobject:
            raise ValueError(f"{key} holds Python objects")
        array = allocate(shape[::-1] if fortran else shape, dtype)
        flat = array.reshape(-1).view(np.uint8)
        for start in range(0, flat.size, 2**24):
            piece = flat[start : start + 2**24]
            piece[:] = np.frombuffer(packed.read(piece.size), np.uint8)  # too few bytes do not fit
        return array.T if fortran else array


def read_h5(path: Path, key: str) -> np.ndarray:
    """One array of an HDF5 file; needs h5py."""
    try:
        h5py = importlib.import_module("h5py")
    except ImportError as error:
        raise DataError(
            f"reading {path} needs h5py, which is not installed: pip install 'orbitune[pcam]' (or pip install h5py)"
        ) from error
    with reading(path, f"an HDF5 file with an array {key!r}"), h5py.File(path, "r") as file:
        if key not in file:
            raise ValueError(f"it holds {', '.join(file) or 'nothing'}")
        array = allocate(file[key].shape, file[key].dtype)
        if array.size:
            file[key].read_direct(array)
        return array
