"""Settings of the process that make numerical work faster and change no result."""

import ctypes
import logging

logger = logging.getLogger(__name__)

# Names and numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_LARGE = 2**30


def keep_freed_memory() -> bool:
    """Let the C library keep freed memory for the next tensor, instead of giving it back to the kernel at once.

    glibc maps every allocation above a threshold separately, and unmaps it when it is freed. A training step allocates
    and frees the same large activations again and again, and the kernel must fetch and clear every page each time.
    The process holds on to its peak memory in exchange. On other C libraries nothing happens.

    Returns:
        Whether the settings were accepted.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return False
    settings = ((_M_MMAP_THRESHOLD, _LARGE), (_M_TRIM_THRESHOLD, _LARGE), (_M_TOP_PAD, _LARGE // 16))
    accepted = all([mallopt(name, value) == 1 for name, value in settings])
    logger.debug("allocator keeps freed memory: %s", accepted)
    return accepted
