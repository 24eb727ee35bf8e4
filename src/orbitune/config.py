"""The configuration of a fit: frozen dataclasses on one side, TOML on the other. Unknown keys are errors."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from orbitune.errors import InputError, refuse_bad_numbers, unknown_name
from orbitune.learners import LEARNERS, CrossFit, Learner
from orbitune.learners.budgets import BUDGETS
from orbitune.orbits import AffineOrbit
from orbitune.orbits.ranges import Parameterisation
from orbitune.orbits.warp import Padding

T = TypeVar("T")


@dataclass(frozen=True)
class OrbitConfig:
    """Which transformations may be learned, and where their ranges start.

    Attributes:
        learn: names of the parameters whose range is learned (by default all); the others stay at zero, or at
            ``ranges``. An empty list without ranges is no orbit at all.
        ranges: initial (or fixed) ranges by name; left out, they start at ±start.
        start, symmetric, parameterisation, padding: see :class:`orbitune.orbits.AffineOrbit`.
    """

    learn: tuple[str, ...] | None = None
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    start: float = 0.05
    symmetric: bool = False
    parameterisation: Parameterisation = "direct"
    padding: Padding = "zeros"


@dataclass(frozen=True)
class FitConfig:
    """Everything that decides a fit.

    Attributes:
        data: a known data set, a folder of images, or an .npz file.
        resize: side to which all images are brought, squeezing those that are not square.
        train_size: use a class-balanced subset of so many training images.
        orbit: the transformations.
        likelihood: "softmax", "gaussian" (regression on one-hot codes), or "bernoulli" (two classes).
        backbone: "mnist-cnn", "pcam", "resnet18" (for small images), "resnet18-narrow" (16 channels, not 64),
            "resnet18-strided" (for larger ones), "resnet18-strided-narrow" (32 channels), "mlp" or "identity".
        learner: "crossfit", "coordinate", "joint", "max-likelihood", "fixed", "augmented" or "plain".
        settings: the learner's own settings.
        baseline_epochs: training of the plain network beside it; 0 for none. The learner "plain" has none beside it.
        predict_orbit_size: orbit points per test image.
        seed: of everything random.
    """

    data: str = "rotated-digits"
    resize: int | None = None
    train_size: int | None = None
    orbit: OrbitConfig = field(default_factory=OrbitConfig)
    likelihood: str = "softmax"
    backbone: str = "mnist-cnn"
    learner: str = "crossfit"
    settings: Learner = field(default_factory=CrossFit)
    baseline_epochs: float = 30.0
    predict_orbit_size: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        refuse_bad_numbers(self, positive=("predict_orbit_size", "resize", "train_size"))

    @property
    def learned_parameters(self) -> tuple[str, ...]:
        """Names of the transform parameters whose range is learned, not given."""
        if not self.settings.learns_ranges:
            return ()
        return AffineOrbit.names if self.orbit.learn is None else self.orbit.learn


def read_config(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        values = tomllib.loads(path.read_text())
    except OSError as error:
        raise InputError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not valid TOML: {error}") from error
    for key in ("orbit", "settings"):
        if not isinstance(values.get(key, {}), dict):
            raise InputError(f"{path}: {key}: expected a table, [{key}], got {values[key]!r}")
    return values


def make_config(values: Mapping[str, Any], where: str = "configuration") -> FitConfig:
    """A FitConfig from nested tables; ``settings`` are read as those of the named learner."""
    learner = values.get("learner", "crossfit")
    if learner not in LEARNERS:
        raise unknown_name("learner", learner, LEARNERS)
    values = dict(values)
    settings = from_mapping(LEARNERS[learner], values.pop("settings", {}), f"{where} [settings]")
    return from_mapping(FitConfig, {**values, "settings": settings}, where)


def make_learner(name: str, budget: str) -> Learner:
    """A learner with the settings of a budget, both by name."""
    if name not in LEARNERS:
        raise unknown_name("learner", name, LEARNERS)
    if budget not in BUDGETS:
        raise unknown_name("budget", budget, BUDGETS)
    return from_mapping(LEARNERS[name], BUDGETS[budget].get(name, {}), f"budget {budget}")


def from_mapping(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """An instance of a dataclass from a table, checked key by key."""
    hints = get_type_hints(cls)
    known = {f.name: hints[f.name] for f in fields(cls)}  # ty: ignore[invalid-argument-type]
    for key in values:
        if key not in known:
            raise unknown_name(f"key in {where}:", key, known)
    converted = {key: _convert(value, known[key], f"{where}: {key}") for key, value in values.items()}
    try:
        return cls(**converted)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _convert(value: Any, hint: Any, where: str) -> Any:
    """The value as the type says, or an error that names both."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        options = [option for option in arguments if option is not type(None)]
        return None if value is None else _convert(value, options[0], where)
    if origin is Literal:
        if value not in arguments:
            raise unknown_name(where, value, arguments)
        return value
    if origin is tuple and isinstance(value, (list, tuple)):
        items = (arguments[0],) * len(value) if arguments[-1] is Ellipsis else arguments
        if len(items) != len(value):
            raise InputError(f"{where}: expected {len(items)} values, got {value!r}")
        return tuple(_convert(item, kind, where) for item, kind in zip(value, items, strict=True))
    if origin is dict and isinstance(value, Mapping):
        return {key: _convert(item, arguments[1], f"{where}.{key}") for key, item in value.items()}
    if isinstance(hint, type):
        if is_dataclass(hint) and isinstance(value, Mapping):
            return from_mapping(hint, value, where)
        if issubclass(hint, Enum) and isinstance(value, str):
            valid = [member.value for member in hint]
            if value not in valid:
                raise unknown_name(where, value, valid)
            return hint(value)
        if hint is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if isinstance(value, hint) and not (hint is int and isinstance(value, bool)):
            return value
    raise InputError(f"{where}: expected {getattr(hint, '__name__', hint)}, got {value!r}")


def to_toml(config: object) -> str:
    """A dataclass as TOML; entries that are None are left out."""
    lines: list[str] = []
    _write_table(asdict(config), (), lines)  # ty: ignore[invalid-argument-type]
    return "\n".join(lines) + "\n"


def _write_table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    if path:
        lines += ["", f"[{'.'.join(path)}]"]
    lines += [f"{key} = {_toml(value)}" for key, value in table.items() if not isinstance(value, dict | None)]
    for key, value in table.items():
        if isinstance(value, dict):
            _write_table(value, (*path, key), lines)


def _toml(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case list() | tuple():
            return "[" + ", ".join(_toml(item) for item in value) + "]"
    raise TypeError(f"cannot write {value!r} as TOML")
