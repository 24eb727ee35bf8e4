"""The two forms in which CIFAR-10 is distributed: fixed-length binary records, and Python pickles."""

import io
import pickle
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from orbitune.data.formats import find_member, reading

IMAGE_BYTES = 3 * 32 * 32

Batch = tuple[np.ndarray, np.ndarray]
"""Images (N, 3, 32, 32) uint8 and labels (N,)."""


def read_binary_batches(path: Path, members: Sequence[str]) -> Batch:
    """Batches of the binary version, in a folder or in their .tar.gz."""
    return _read(path, members, _binary_batch)


def read_pickled_batches(path: Path, members: Sequence[str]) -> Batch:
    """Batches of the Python version, in a folder or in their .tar.gz; nothing but numpy arrays is unpickled."""
    return _read(path, members, _pickled_batch)


def _read(path: Path, members: Sequence[str], parse: Callable[[bytes], Batch]) -> Batch:
    with reading(path, f"the CIFAR-10 batches {', '.join(members)}"):
        batches = [parse(content) for content in _contents(path, members)]
    images, labels = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return images, labels


def _contents(path: Path, members: Sequence[str]) -> list[bytes]:
    if path.is_dir():
        return [(path / member).read_bytes() for member in members]
    # Members are read by name into memory: nothing is written, so a crafted archive has no path to escape by.
    with tarfile.open(path) as archive:
        files = [archive.extractfile(find_member(archive.getnames(), member)) for member in members]
        return [file.read() for file in files if file is not None]


def _binary_batch(content: bytes) -> Batch:
    if not content or len(content) % (1 + IMAGE_BYTES):
        raise ValueError(f"a batch of {len(content)} bytes is no whole number of records of 1 + {IMAGE_BYTES}")
    records = np.frombuffer(content, np.uint8).reshape(-1, 1 + IMAGE_BYTES)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)


def _pickled_batch(content: bytes) -> Batch:
    try:
        batch = _ArrayUnpickler(io.BytesIO(content), encoding="bytes").load()
    except (pickle.UnpicklingError, AttributeError, IndexError, TypeError) as error:  # all that damage leads to
        raise ValueError(str(error)) from error
    if not isinstance(batch, dict) or not {b"data", b"labels"} <= batch.keys():
        raise ValueError("a batch is no dictionary with data and labels")
    return np.asarray(batch[b"data"], np.uint8).reshape(-1, 3, 32, 32), np.asarray(batch[b"labels"], np.int64)


class _ArrayUnpickler(pickle.Unpickler):
    """Unpickles builtin containers and numpy arrays; any other name in the file is refused, not looked up."""

    def find_class(self, module: str, name: str) -> object:
        match module, name:
            # numpy has moved this function since 2009; an array knows where it is today.
            case "numpy.core.multiarray" | "numpy._core.multiarray", "_reconstruct":
                return np.empty(0).__reduce__()[0]
            case "numpy", "ndarray":
                return np.ndarray
            case "numpy", "dtype":
                return np.dtype
            case "_codecs", "encode":
                return _encode_latin1
            case _:
                raise ValueError(f"it asks for {module}.{name}, which has no place in a file of images")


def _encode_latin1(text: str, encoding: str) -> bytes:
    """How old pickle protocols spell bytes."""
    if encoding != "latin1":
        raise ValueError(f"it asks for the encoding {encoding!r}")
    return text.encode("latin1")
