"""``orbitune reproduce``: regenerate a result of the paper."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orbitune.commands.options import Budget, Json, LogFile, Quiet, Seed, listed, make_progress
from orbitune.experiments import EXPERIMENTS
from orbitune.experiments import rows as experiment_rows
from orbitune.experiments.summary import table

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
    rows: Annotated[
        list[str] | None, typer.Option(help="Only these rows, separated by commas, for example M8,M9. Default: all.")
    ] = None,
    seed: Seed = 0,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds, from --seed on. Default: the budget's number.")
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(help="Directory for unfinished rows, which go on from there. Default: in the user's cache."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    log: LogFile = None,
) -> None:
    """Regenerate a result of the paper, with its figure: one JSON file per row and seed.

    Rows that are in --out are not computed again. Ctrl-C saves; the same command continues.

    Examples:

    `orbitune reproduce fig1 --budget smoke --out results`

    `orbitune reproduce rotmnist --rows M8,M9 --seeds 3`
    """
    experiment = EXPERIMENTS[name.value]
    num_seeds = experiment.budgets[budget.value].num_seeds if seeds is None else seeds
    summary = experiment_rows.reproduce(
        experiment,
        budget.value,
        out,
        rows=listed(rows),
        seeds=range(seed, seed + num_seeds),
        work=work,
        progress=make_progress(quiet, log),
    )
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        Console().print(table(experiment, summary))
    Console(stderr=True).print(f"Results: {out}", markup=False)
