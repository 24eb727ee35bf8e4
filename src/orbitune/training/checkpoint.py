"""A nested state in one safetensors file, replaced atomically: readers find the old or the new, never half of one."""

import json
import os
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from orbitune.errors import CheckpointError


def save_state(path: Path, state: dict[str, Any]) -> None:
    """Write nested dicts and lists of tensors, numbers and strings. On failure the previous file is left as it was."""
    tensors: dict[str, Tensor] = {}
    skeleton = _take_tensors(state, "state", tensors)
    unfinished = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, unfinished, metadata={"skeleton": json.dumps(skeleton)})
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except (OSError, SafetensorError) as error:
        unfinished.unlink(missing_ok=True)
        kept = f"the previous one, {path}, is intact" if path.exists() else "there is no earlier one"
        raise CheckpointError(f"could not save {path}: {error}. {kept}. Free some disk space, then resume") from error


def load_state(path: Path) -> dict[str, Any]:
    """Read what :func:`save_state` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            skeleton = json.loads(file.metadata()["skeleton"])
            return _put_tensors(skeleton, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no saved state at {path}") from error
    except (OSError, SafetensorError, TypeError, KeyError, ValueError) as error:
        raise CheckpointError(f"{path} is not a readable state of Orbitune: {error}") from error


def _take_tensors(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """JSON with tensors replaced by references; dicts become lists of pairs, since their keys may be integers."""
    if isinstance(value, Tensor):
        tensors[name] = value.detach().to("cpu", copy=True).contiguous()
        return {"tensor": name, "order": value.dim_order()}
    if isinstance(value, dict):
        return {"dict": [[key, _take_tensors(item, f"{name}.{key}", tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list": [_take_tensors(item, f"{name}.{index}", tensors) for index, item in enumerate(value)]}
    return value


def _put_tensors(value: Any, tensors: dict[str, Tensor]) -> Any:
    match value:
        case {"tensor": name, **layout}:
            return _laid_out(tensors[name], layout.get("order"))  # None in files of earlier versions
        case {"dict": pairs}:
            return {key: _put_tensors(item, tensors) for key, item in pairs}
        case {"list": items}:
            return [_put_tensors(item, tensors) for item in items]
        case _:
            return value


def _laid_out(tensor: Tensor, order: list[int] | None) -> Tensor:
    """The same values, with axes in this order in memory; the file has them one after the other.

    Layouts must come back too: fused optimisers walk through a weight and its moments in the order of their memory.
    """
    if order is None or order == sorted(order):
        return tensor
    return tensor.permute(order).contiguous().permute([order.index(axis) for axis in range(tensor.ndim)])
