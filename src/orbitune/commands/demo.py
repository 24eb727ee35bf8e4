"""``orbitune demo``: see it work, in minutes, offline."""

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orbitune import fitting
from orbitune.commands.options import Json, LogFile, Quiet, Seed, make_progress
from orbitune.commands.show import show_result
from orbitune.config import FitConfig, make_config
from orbitune.data import rotated_digits
from orbitune.learners.budgets import BUDGETS

DemoBudget = StrEnum("DemoBudget", {"smoke": "smoke", "laptop": "laptop"})
TRUTH = {"rotation": (-math.pi, math.pi)}


def demo(
    out: Annotated[Path, typer.Option(help="Run directory: model, history, pictures.")] = Path("demo-run"),
    budget: Annotated[DemoBudget, typer.Option(help="smoke: does it run? laptop: the demo.")] = DemoBudget.laptop,
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted demo in --out.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    log: LogFile = None,
) -> None:
    """Learn, from ranges near zero, what rotated digits are invariant to.

    The digits (a part of MNIST that comes with the package) were turned by random angles, which the model is not told.
    Two to four minutes on two cores, no network needed.
    """
    if not (quiet or as_json):
        Console(stderr=True).print(
            "Digits were turned by random angles. Which transformations keep their label? Nobody tells the model.",
            highlight=False,
        )
    config = demo_config(budget, seed)
    result = fitting.fit(config, rotated_digits(seed=seed), out, resume=resume, progress=make_progress(quiet, log))
    show_result(result, config.learned_parameters, out, as_json, TRUTH)


def demo_config(budget: DemoBudget, seed: int) -> FitConfig:
    """A fit small enough to watch."""
    smoke = budget == DemoBudget.smoke
    settings = BUDGETS["smoke" if smoke else "demo"]["crossfit"]
    return make_config(
        {
            "data": "rotated-digits",
            "train_size": 200 if smoke else 5000,
            "baseline_epochs": 1.0 if smoke else 10.0,
            "predict_orbit_size": 4 if smoke else 16,
            "seed": seed,
            "settings": settings,
        }
    )
