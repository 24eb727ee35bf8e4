"""``orbitune reproduce``: regenerate a result of the paper."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orbitune.commands.options import Budget, Json, Seed
from orbitune.experiments import EXPERIMENTS

ExperimentName = StrEnum("ExperimentName", {name: name for name in EXPERIMENTS})


def reproduce(
    name: Annotated[ExperimentName, typer.Argument(help="Which table or figure of the paper.")],
    budget: Annotated[
        Budget,
        typer.Option(help="smoke: seconds, to see that it runs. laptop: two cores. paper: as large as the paper's."),
    ] = Budget.laptop,
    out: Annotated[
        Path, typer.Option(help="Directory for figures and JSON results; rows that are there are kept.")
    ] = Path("results"),
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Regenerate a result of the paper, with its figure.

    Example: `orbitune reproduce fig1 --budget smoke --out results`
    """
    experiment = EXPERIMENTS[name.value]
    record = experiment.run(experiment.BUDGETS[budget.value], seed, out)
    if as_json:
        typer.echo(json.dumps(record))
    else:
        Console().print(experiment.table(record))
    Console(stderr=True).print(f"Results: {out}", markup=False)
