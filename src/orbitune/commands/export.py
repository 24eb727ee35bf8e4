"""``orbitune export``: take what was learned elsewhere."""

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from orbitune.commands.options import Json, Seed
from orbitune.errors import InputError
from orbitune.export import (
    LIBRARIES,
    augmentation_difference,
    describe_augmentation,
    fixed_predictor,
    onnx_difference,
    render_augmentation,
    to_onnx,
)
from orbitune.saving import load_model

FILES = {**{name: f"augmentation_{name}.py" for name in LIBRARIES}, "json": "augmentation.json", "onnx": "model.onnx"}
Target = StrEnum("Target", {name: name for name in FILES})


def export(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    to: Annotated[
        Target,
        typer.Option(
            help="torch, torchvision, kornia, albumentations: the learned augmentation as a Python file. json: its "
            "ranges and conventions. onnx: the invariant predictor."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write; - is standard output. Default: a file in the run directory.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file if it exists.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Run what was written, and print how far it is from the model.")
    ] = False,
    orbit_size: Annotated[int, typer.Option(min=1, help="onnx: orbit points averaged per image.")] = 32,
    num_f_samples: Annotated[int, typer.Option(min=1, help="onnx: points in f of the softmax average.")] = 256,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write the learned augmentation for another library, or the predictor as ONNX.

    Examples:

    `orbitune export run --to torch` writes run/augmentation_torch.py. Copy it anywhere; then
    `from augmentation_torch import LearnedAugmentation`

    `orbitune export run --to kornia --out transforms.py --check` (runs it beside our own warp)

    `orbitune export run --to json --out - | jq .parameters`

    `orbitune export run --to onnx --orbit-size 64` (images in, probabilities and uncertainty out)
    """
    target, to_screen = to.value, out == Path("-")
    if to_screen and (as_json or target == "onnx"):
        raise InputError("--out - prints the export itself: it goes neither with --json nor with --to onnx")
    if check and (to_screen or target == "json"):
        raise InputError("--check runs a file that was written: it goes neither with --out - nor with --to json")
    path = run / FILES[target] if out is None else out
    if path.is_dir():
        raise InputError(f"--out names a file, but {path} is a directory: try {path / FILES[target]}")
    if path.exists() and not (force or to_screen):
        raise InputError(f"{path} exists: give --force to overwrite it, or another file with --out")

    model, structure = load_model(run)
    seeded = torch.Generator().manual_seed(seed)
    images = torch.rand(7, *structure.image_shape, generator=seeded) if check else None
    differences: dict[str, float] | None = None
    match target:
        case "json":
            content = (json.dumps(describe_augmentation(model.orbit, structure.image_shape), indent=2) + "\n").encode()
        case "onnx":
            predictor = fixed_predictor(model, orbit_size=orbit_size, num_f_samples=num_f_samples, seed=seed)
            metadata = {
                "class_names": structure.class_names,
                "image_shape": structure.image_shape,
                "ranges": model.orbit.ranges(),
                "orbit_size": predictor.features.params.shape[1],
                "num_f_samples": num_f_samples,
                "seed": seed,
            }
            content = to_onnx(predictor, structure.image_shape, metadata)
            if images is not None:
                differences = onnx_difference(content, predictor, images)
        case _:
            content = render_augmentation(model.orbit, target).encode()
            if images is not None:
                differences = {"pixels": augmentation_difference(model.orbit, target, images, seeded)}
    if to_screen:
        sys.stdout.buffer.write(content)
        return
    write(path, content)
    show(target, path, model.orbit.ranges(), differences, as_json)


def write(path: Path, content: bytes) -> None:
    """All of it, or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_bytes(content)
    os.replace(unfinished, path)


def show(target: str, path: Path, ranges: dict[str, Any], differences: dict[str, float] | None, as_json: bool) -> None:
    """One JSON object, or where the file is and how well it agrees."""
    if as_json:
        record = {"target": target, "file": str(path), "ranges": ranges, "max_difference": differences}
        typer.echo(json.dumps(record))
        return
    console = Console()
    console.print(f"Wrote {path}", markup=False, highlight=False)
    for name, difference in (differences or {}).items():
        console.print(f"Largest difference to the model, {name}: {difference:.1e}", highlight=False)
