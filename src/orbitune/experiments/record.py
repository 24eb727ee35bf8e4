"""What stands in a result file besides the result: configuration, seed, commit, machine."""

import json
import os
import platform
import subprocess
from dataclasses import asdict, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch


def write_record(path: Path, name: str, config: object, seed: int, result: dict[str, Any]) -> dict[str, Any]:
    """Write ``result`` as JSON with its provenance, atomically, and return what was written."""
    record = {
        "experiment": name,
        "config": asdict(config) if is_dataclass(config) and not isinstance(config, type) else config,
        "seed": seed,
        **result,
        "commit": commit(),
        "machine": machine(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(record, indent=2) + "\n")
    os.replace(unfinished, path)
    return record


def machine() -> dict[str, Any]:
    """The kind of machine, without its name."""
    return {
        "cpu": _cpu_model(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "orbitune": version("orbitune"),
    }


def commit() -> str | None:
    """The commit of the checkout this package runs from, marked if its source has changes; None if elsewhere."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    if package != checkout / "src" / "orbitune" or not (checkout / ".git").exists():
        return None
    try:
        head = _git(checkout, "rev-parse", "--short=12", "HEAD")
        changes = _git(checkout, "status", "--porcelain", "--", "src")
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"{head}-dirty" if changes else head


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
