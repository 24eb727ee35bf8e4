"""What the machine can do, and settings of the process that make numerical work faster."""

import ctypes
import logging
from contextlib import suppress

import torch

logger = logging.getLogger(__name__)

# Names and numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_LARGE = 2**30
_NEVER = -1


def keep_freed_memory() -> bool:
    """Let the C library keep freed memory for the next tensor, instead of giving it back to the kernel at once.

    glibc maps every allocation above a threshold separately, and unmaps it when it is freed. A training step allocates
    and frees the same large activations again and again, and the kernel must fetch and clear every page each time.
    The process holds on to its peak memory in exchange, but for tensors of a gigabyte and more. On other C libraries
    nothing happens.

    Returns:
        Whether the settings were accepted.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):
        return False
    settings = ((_M_MMAP_THRESHOLD, _LARGE), (_M_TRIM_THRESHOLD, _NEVER), (_M_TOP_PAD, _LARGE // 16))
    accepted = all([mallopt(name, value) == 1 for name, value in settings])
    logger.debug("allocator keeps freed memory: %s", accepted)
    return accepted


def return_freed_memory() -> None:
    """Give back to the kernel what the C library has kept; on other C libraries nothing happens."""
    with suppress(OSError, TypeError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def has_bfloat16_units(device: torch.device) -> bool:
    """Whether a device multiplies bfloat16 in hardware; where it does not, bfloat16 is several times slower."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    abilities = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(abilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "arm_bf16"))
