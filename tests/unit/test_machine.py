"""Settings of the process."""

import platform
import subprocess
import sys

import pytest

# In a process of its own: the setting is for the whole process and cannot be taken back.
PROGRAM = """
import resource, torch
from orbitune.machine import keep_freed_memory
if {keep}:
    assert keep_freed_memory()
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        torch.ones(12_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_memory_that_is_freed_and_allocated_again_is_not_fetched_from_the_kernel_again():
    def faults(keep):
        program = PROGRAM.format(keep=keep)
        return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)

    assert faults(keep=True) < 0.1 * faults(keep=False)
