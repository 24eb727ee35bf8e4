"""Libraries that only an export needs."""

import importlib
from types import ModuleType

from orbitune.errors import ExportError


def need(module: str, purpose: str, extra: str) -> ModuleType:
    """An optional dependency, or a sentence on how to get it.

    Args:
        module: its name.
        purpose: what it is needed for.
        extra: Orbitune's extra that brings it; "" if none does.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        remedy = f"pip install 'orbitune[{extra}]' (or pip install {module})" if extra else f"pip install {module}"
        raise ExportError(f"{purpose} needs {module}, which cannot be imported ({error}): {remedy}") from error
