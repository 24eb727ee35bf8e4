"""``orbitune fit``: learn from your data."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from orbitune import fitting
from orbitune.commands.options import Budget, Json, LogFile, Quiet, listed, make_progress
from orbitune.commands.show import show_result
from orbitune.config import make_config, read_config
from orbitune.data import load_dataset
from orbitune.errors import InputError
from orbitune.learners import LEARNERS
from orbitune.learners.budgets import BUDGETS
from orbitune.orbits import AffineOrbit
from orbitune.saving import BACKBONES

LearnerName = StrEnum("LearnerName", {name: name for name in LEARNERS})


def fit(
    data: Annotated[
        str | None,
        typer.Argument(
            help="A known data set (`orbitune data list`), a folder with one sub-folder per class, or an .npz."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Run directory: model, checkpoints, history, pictures.")] = Path("run"),
    orbit: Annotated[
        list[str] | None,
        typer.Option(
            help="Transformations to learn, separated by commas: " + ", ".join(AffineOrbit.names) + ". Default: all."
        ),
    ] = None,
    likelihood: Annotated[str | None, typer.Option(help="softmax (default), gaussian or bernoulli.")] = None,
    learner: Annotated[LearnerName | None, typer.Option(help="How ranges are found. Default: crossfit.")] = None,
    backbone: Annotated[
        str | None, typer.Option(help="One of: " + ", ".join(BACKBONES) + ". Default: mnist-cnn.")
    ] = None,
    resize: Annotated[
        int | None,
        typer.Option(min=4, help="Bring all images to so many pixels square; needed if they differ in size."),
    ] = None,
    train_size: Annotated[int | None, typer.Option(min=2, help="Use a balanced subset of so many images.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file; options given here win over it.")] = None,
    budget: Annotated[Budget, typer.Option(help="smoke: does it run? laptop: two cores. paper: the paper's sizes.")] = (
        Budget.laptop
    ),
    seed: Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    log: LogFile = None,
) -> None:
    """Learn which transformations do not change the label, and a model that ignores them.

    Examples:

    `orbitune fit rotated-digits --out run`

    `orbitune fit photos/ --orbit rotation,translate_x --out run` (`photos/cats/*.png`, `photos/dogs/*.png`, …)

    `orbitune fit photos/ --resize 64 --out run` (for photos of different sizes)

    `orbitune fit mydata.npz --learner fixed --config ranges.toml --out run`
    """
    where = str(config or "configuration")
    values: dict[str, Any] = read_config(config) if config else {}
    options = {
        "data": data,
        "likelihood": likelihood,
        "learner": None if learner is None else learner.value,
        "backbone": backbone,
        "resize": resize,
        "train_size": train_size,
        "seed": seed,
    }
    values |= {key: value for key, value in options.items() if value is not None}
    if orbit is not None:
        values.setdefault("orbit", {})["learn"] = listed(orbit)
    if resume:
        saved = read_config(out / fitting.CONFIG)
        refuse_changes(values, saved, out)
        resolved = make_config(saved, str(out / fitting.CONFIG))
    else:
        if "data" not in values:
            raise InputError("nothing to learn from: give DATA, for example `orbitune fit rotated-digits`")
        if budget == Budget.smoke:
            values = {"baseline_epochs": 1, "predict_orbit_size": 2, **values}
        preset = BUDGETS[budget.value].get(values.get("learner", "crossfit"), {})
        resolved = make_config({**values, "settings": {**preset, **values.get("settings", {})}}, where)
    dataset = load_dataset(resolved.data, seed=resolved.seed, resize=resolved.resize)
    result = fitting.fit(resolved, dataset, out, resume=resume, progress=make_progress(quiet, log))
    show_result(result, resolved.learned_parameters, out, as_json)


def refuse_changes(wanted: Mapping[str, Any], saved: Mapping[str, Any], run: Path) -> None:
    """What is asked for beside --resume must be what the run was started with."""
    for key, value in wanted.items():
        before = saved.get(key)
        if isinstance(value, Mapping):
            refuse_changes(value, before if isinstance(before, Mapping) else {}, run)
        elif value != before:
            raise InputError(
                f"--resume continues {run} with its own {fitting.CONFIG}, where {key} is {before!r}, not {value!r}: "
                "leave the option out, or start a new run in another --out"
            )
