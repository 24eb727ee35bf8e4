"""Room for pixels: in memory, or in a temporary file if there are very many."""

import math
import os
import tempfile
from collections.abc import Sequence

import numpy as np

MAX_IN_MEMORY = 2**30  # bytes; what is larger goes to a file


def allocate(shape: Sequence[int], dtype: np.dtype | type = np.uint8) -> np.ndarray:
    """An array to be filled. Beyond ``MAX_IN_MEMORY`` it is mapped from a file that vanishes with it.

    The file lies where Python puts temporary files: the variable TMPDIR names another disk. Its space is reserved at
    once, because a full disk could not be reported while a mapped array is written.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size <= MAX_IN_MEMORY:
        return np.empty(shape, dtype)
    with tempfile.TemporaryFile(prefix="orbitune-") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size)
        except AttributeError:  # not on this system
            file.truncate(size)
        except OSError as error:
            where = f"{tempfile.gettempdir()} (for {size / 2**30:.1f} GB of images; set TMPDIR to use another disk)"
            raise OSError(error.errno, error.strerror, where) from error
        return np.memmap(file, dtype, "r+", shape=tuple(shape))


def contiguous(array: np.ndarray, dtype: np.dtype | type) -> np.ndarray:
    """The array itself if it lies in order, can be written to and has the type, else a copy, made piece by piece."""
    if array.dtype == dtype and array.flags.c_contiguous and array.flags.writeable:
        return array
    copy = allocate(array.shape, dtype)
    for start in range(0, len(array), 1000):
        copy[start : start + 1000] = array[start : start + 1000]
    return copy
