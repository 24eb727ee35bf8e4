"""Where a result comes from: commit, machine, memory; and how it is written."""

import json
import os
import platform
import re
import subprocess
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from orbitune.machine import return_freed_memory


def write_json(path: Path, record: dict[str, Any] | list[str]) -> None:
    """Write a record, atomically; lists of numbers stand on one line each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=2)
    # A line break can only be one of the layout: within strings it is escaped.
    text = re.sub(r"\[\n([-+.\deE,\s]+?)\n\s*\]", lambda m: f"[{' '.join(m[1].split())}]", text)
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text + "\n")
    os.replace(unfinished, path)


def machine() -> dict[str, Any]:
    """The kind of machine, without its name."""
    return {
        "cpu": _cpu_model(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "orbitune": version("orbitune"),
    }


@cache
def commit() -> str | None:
    """The commit of the checkout this package runs from, marked if its source has changes; None if elsewhere.

    It is that of the first call: what is called at the start tells of the code that was loaded then.
    """
    package = Path(__file__).resolve().parent
    checkout = package.parents[1]
    if package != checkout / "src" / "orbitune" or not (checkout / ".git").exists():
        return None
    try:
        head = _git(checkout, "rev-parse", "--short=12", "HEAD")
        changes = _git(checkout, "status", "--porcelain", "--", "src")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}-dirty" if changes else head


def forget_peak_memory() -> None:
    """Let :func:`peak_memory_mb` speak of what comes from now on (Linux)."""
    return_freed_memory()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float | None:
    """The largest resident memory of this process so far; None where the system does not say (other than Linux)."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def _git(checkout: Path, *arguments: str) -> str:
    command = ["git", "-C", str(checkout), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
