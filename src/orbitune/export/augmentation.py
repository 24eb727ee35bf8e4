"""The learned augmentation in the words of other libraries: as data (JSON), or as a Python file.

Generated files stand alone. Their torch code is not written a second time: it is the source text of this package's own
``warp`` and ``pull_back``, so it cannot drift away from what was learned with.
"""

import ast
import inspect
import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from orbitune.errors import InputError, unknown_name
from orbitune.orbits import AffineOrbit, Orbit
from orbitune.orbits import affine as affine_module
from orbitune.orbits import warp as warp_module

LIBRARIES = ("torch", "torchvision", "kornia", "albumentations")
"""Libraries for which there is a template, ``templates/NAME.py.j2``."""

ORDER = ("scale", "shear_y", "shear_x", "rotation", "translation")
"""What happens to the content of an image, first to last."""

EXAMPLE = {
    "rotation": 0.5,
    "log_scale_x": 0.1,
    "log_scale_y": -0.2,
    "shear_x": 0.3,
    "shear_y": -0.1,
    "translate_x": 0.25,
    "translate_y": -0.4,
}
"""Parameters, all different and none of them zero, for which another implementation can compare its matrix."""

_FILES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render_augmentation(orbit: Orbit, library: str) -> str:
    """A Python file for a library: a class ``LearnedAugmentation`` that draws from the orbit's ranges and warps."""
    if library not in LIBRARIES:
        raise unknown_name("library", library, LIBRARIES)
    orbit = _check_affine(orbit)
    return _FILES.get_template(f"{library}.py.j2").render(
        version=version("orbitune"),
        convention=_convention(AffineOrbit),
        padding=orbit.padding,
        parameters=_parameters(orbit),
        warp_source=_definitions(warp_module),
        pull_back_source=_without_shapes(inspect.getsource(affine_module.pull_back)),
    )


def describe_augmentation(orbit: Orbit, image_shape: tuple[int, int, int]) -> dict[str, Any]:
    """Ranges and convention as plain data, with an example to check another implementation against.

    Args:
        orbit: an affine orbit.
        image_shape: (channels, height, width) of the images the ranges were learned on.
    """
    orbit = _check_affine(orbit)
    _, height, width = image_shape
    example = torch.tensor([list(EXAMPLE.values())], dtype=torch.float64)
    matrix = affine_module.pull_back(example[None], height, width)[0, 0]
    return {
        "format": "orbitune-augmentation",
        "format_version": 1,
        "orbitune": version("orbitune"),
        "family": "affine",
        "distribution": "every parameter uniform in [low, high], independently, anew for every image",
        "parameters": _parameters(orbit),
        "order": list(ORDER),
        "interpolation": "bilinear",
        "padding": orbit.padding,
        "image_shape": list(image_shape),
        "convention": {"parameters": _convention(AffineOrbit), "warp": _convention(warp_module.warp)},
        "example": {
            "parameters": EXAMPLE,
            "height": height,
            "width": width,
            "pull_back": matrix.tolist(),
        },
    }


def _parameters(orbit: AffineOrbit) -> list[dict[str, Any]]:
    ranges = orbit.ranges()
    return [
        {"name": name, "low": ranges[name][0], "high": ranges[name][1], "unit": unit}
        for name, unit in zip(orbit.names, orbit.units, strict=True)
    ]


def _check_affine(orbit: Orbit) -> AffineOrbit:
    if not isinstance(orbit, AffineOrbit):
        raise InputError(
            f"only an affine augmentation of images can be written for other libraries; this model has "
            f"{type(orbit).__name__}. A run of the learner `plain` has learned none. Its predictor can be exported "
            "still, as ONNX"
        )
    return orbit


def _convention(documented: object) -> str:
    """The ``Convention:`` block of a docstring."""
    blocks = re.split(r"^(?=\w[\w ]*:$)", inspect.getdoc(documented) or "", flags=re.MULTILINE)
    (block,) = [block for block in blocks if block.startswith("Convention:")]
    text = inspect.cleandoc(block.removeprefix("Convention:"))
    return re.sub(r":func:`[\w.]*?(\w+)`", r"``\1``", text)


def _definitions(module: ModuleType) -> str:
    """The text of a module without its docstring and imports."""
    text = inspect.getsource(module)
    skipped = (ast.Import, ast.ImportFrom, ast.Expr)
    first = next(node for node in ast.parse(text).body if not isinstance(node, skipped))
    return _without_shapes("\n".join(text.splitlines()[first.lineno - 1 :]) + "\n")


def _without_shapes(source: str) -> str:
    """Shape annotations need jaxtyping, which the reader of a generated file may not have."""
    return re.sub(r'\b(?:Float|Int|Shaped)\[Tensor, "[^"]*"\]', "Tensor", source)
