"""Is this installation usable? What is here, what is missing, and what to do about it."""

import importlib
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import torch
from packaging.requirements import Requirement

from orbitune.data import data_dir, dataset_table, load_digits
from orbitune.gp.linalg import cholesky
from orbitune.orbits import AffineOrbit

PACKAGES = ("orbitune", "torch", "gpytorch", "numpy", "scikit-learn")
MODULES = {"scikit-learn": "sklearn", "pillow": "PIL"}  # where it is not the name of the distribution
DEVELOPMENT = ("dev", "docs")  # extras that users do not need
LITTLE_SPACE = 2**30  # bytes; a run takes some tens of megabytes, a data set up to several gigabytes


@dataclass(frozen=True)
class Extra:
    """An optional part of Orbitune: what it needs, and the command that gets what is missing."""

    name: str
    packages: tuple[str, ...]
    missing: tuple[str, ...]
    install: str


@dataclass(frozen=True)
class DataDirectory:
    """Where data sets are looked for. It need not exist: ``writable`` says whether it could be made."""

    path: str
    exists: bool
    writable: bool
    free_bytes: int | None
    present: tuple[str, ...]
    absent: tuple[str, ...]


@dataclass(frozen=True)
class Diagnosis:
    """What was found. ``problems`` make Orbitune unusable, ``warnings`` only some of it."""

    versions: dict[str, str]
    threads: int
    cores: int | None
    devices: tuple[str, ...]
    data: DataDirectory
    extras: tuple[Extra, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def diagnose() -> Diagnosis:
    """Look at everything; nothing is changed, fetched or written."""
    data = look_at_data()
    problems = [*check_dependencies(), *check_digits(), *check_arithmetic()]
    return Diagnosis(
        {"python": platform.python_version(), **{name: installed(name) or "missing" for name in PACKAGES}},
        torch.get_num_threads(),
        os.cpu_count(),
        tuple(devices()),
        data,
        tuple(look_at_extras()),
        tuple(problems),
        tuple(warn_about(data)),
    )


def installed(package: str) -> str | None:
    """The version of a package, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def devices() -> list[str]:
    """What torch could compute on, beside the processor."""
    found = ["cpu"]
    if torch.cuda.is_available():
        found += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found


def requirements() -> list[Requirement]:
    """What the package says it needs, extras included."""
    return [Requirement(line) for line in requires("orbitune") or ()]


def check_dependencies() -> list[str]:
    """A sentence for every required package that is missing, too old, or cannot be imported."""
    problems = []
    for requirement in requirements():
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        name, found, wanted = requirement.name, installed(requirement.name), requirement.specifier
        remedy = f"pip install '{name}{wanted}'"
        if found is None:
            problems.append(f"{name} is not installed: {remedy}")
        elif not wanted.contains(found, prereleases=True):
            problems.append(f"{name} {found} is installed, but {wanted} is needed: {remedy}")
        else:
            try:
                importlib.import_module(MODULES.get(name, name))
            except Exception as error:  # a broken package may raise anything
                problems.append(f"{name} {found} cannot be imported ({error}): pip install --force-reinstall {name}")
    return problems


def look_at_extras() -> list[Extra]:
    """The optional parts, as the package's metadata name them."""
    needs: dict[str, list[str]] = {}
    for requirement in requirements():
        for part in str(requirement.marker or "").split("extra == ")[1:]:
            needs.setdefault(part.split()[0].strip("'\""), []).append(requirement.name)
    return [
        Extra(name, tuple(packages), tuple(p for p in packages if not installed(p)), f"pip install 'orbitune[{name}]'")
        for name, packages in needs.items()
        if name not in DEVELOPMENT
    ]


def look_at_data() -> DataDirectory:
    """The data directory, and what is in it."""
    path = data_dir()
    rows = dataset_table()
    return DataDirectory(
        str(path),
        path.is_dir(),
        is_writable(path),
        free_space(path),
        tuple(row.name for row in rows if row.present),
        tuple(row.name for row in rows if not row.present),
    )


def is_writable(path: Path) -> bool:
    """Whether files can be made in a directory, or the directory itself if it does not exist yet."""
    nearest = _nearest(path)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def free_space(path: Path) -> int | None:
    """Bytes free on the disk of a path that need not exist; None where the system does not say."""
    try:
        return shutil.disk_usage(_nearest(path)).free
    except OSError:
        return None


def check_digits() -> list[str]:
    """The data set inside the package can be read."""
    return _attempt(load_digits, "the digits inside the package cannot be read", "reinstall orbitune")


def check_arithmetic() -> list[str]:
    """An image can be warped and a matrix factorised: what every step of a fit consists of."""

    def compute() -> None:
        AffineOrbit()(torch.zeros(1, 1, 8, 8), 2, torch.Generator().manual_seed(0))
        cholesky(torch.eye(4, dtype=torch.float64))

    return _attempt(compute, "torch cannot warp an image or factorise a matrix", "reinstall torch")


def warn_about(data: DataDirectory) -> list[str]:
    """What will only hurt some commands."""
    warnings = []
    if not data.writable:
        warnings.append(
            f"the data directory {data.path} cannot be written: `orbitune data fetch` will fail. "
            "Set ORBITUNE_DATA to a folder of yours"
        )
    for what, path in (("the data directory", Path(data.path)), ("the current directory", Path.cwd())):
        free = free_space(path)
        if free is not None and free < LITTLE_SPACE:
            warnings.append(f"only {free / 2**20:,.0f} MB are free on the disk of {what}")
    if not is_writable(Path.cwd()):
        warnings.append("the current directory cannot be written: give `--out` to commands that leave files")
    return warnings


def _nearest(path: Path) -> Path:
    """The path, or the nearest folder above it that exists."""
    return next((p for p in (path, *path.absolute().parents) if p.exists()), path)


def _attempt(action: Callable[[], object], complaint: str, remedy: str) -> list[str]:
    try:
        action()
    except Exception as error:  # whatever is broken, the other checks still run
        return [f"{complaint} ({error}): {remedy}"]
    return []
