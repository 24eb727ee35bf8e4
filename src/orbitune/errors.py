"""What can go wrong, as one small tree.

Every error is also a ``ValueError`` or a ``RuntimeError``, so callers who do not know Orbitune still catch it.
A message says what was wrong, what was got, what was expected, and the likely causes.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import fields
from typing import Any


class OrbituneError(Exception):
    """Base of every error that Orbitune raises on purpose."""


class InputError(OrbituneError, ValueError):
    """Something the user passed has the wrong shape, type, range or name."""


class NotLogConcaveError(InputError):
    """A likelihood for which the sample bound would not be a bound."""


class UnsupportedKernelError(InputError):
    """A kernel that lacks what an estimator needs (for example a known spectral density)."""


class CheckpointError(OrbituneError, RuntimeError):
    """A state could not be saved or read; what was saved before is intact."""


class Interrupted(OrbituneError, RuntimeError):
    """The user asked to stop (Ctrl-C) and the state was saved."""


class DataError(InputError):
    """A data set that is missing, damaged, or not what its format or its labels promise."""


class DownloadError(OrbituneError, RuntimeError):
    """A file could not be fetched: no connection, no such file, wrong checksum, full disk."""


class ExportError(OrbituneError, RuntimeError):
    """A model that cannot be written in another format, or a library that is needed for it and missing."""


class NumericalError(OrbituneError, RuntimeError):
    """A computation failed although the input looked right (for example a Cholesky factorisation)."""


def refuse_bad_numbers(settings: Any, positive: Collection[str] = ()) -> None:
    """Numbers among the fields of a dataclass must be finite and not negative, those named ``positive`` at least 1."""
    for field in fields(settings):
        value, least = getattr(settings, field.name), int(field.name in positive)
        if isinstance(value, int | float) and not (math.isfinite(value) and value >= least):
            raise InputError(f"{field.name} must be at least {least}, got {value}")


def unknown_name(what: str, got: object, valid: Iterable[object]) -> InputError:
    """An unknown name, answered with the list of the valid ones."""
    names = ", ".join(sorted(str(name) for name in valid))
    return InputError(f"unknown {what} {got!r}; choose one of: {names}")
