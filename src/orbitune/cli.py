"""The command line: ``orbitune``."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orbitune.errors import OrbituneError
from orbitune.experiments import EXPERIMENTS

app = typer.Typer(
    name="orbitune",
    help="Learns which data augmentation a model should be invariant to, from the training data alone.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
console = Console(stderr=True)

ExperimentName = StrEnum("ExperimentName", {name: name for name in EXPERIMENTS})


class Budget(StrEnum):
    """How much time an experiment may take."""

    smoke = "smoke"
    laptop = "laptop"
    paper = "paper"


@app.callback()
def orbitune() -> None:
    """Learns which data augmentation a model should be invariant to, from the training data alone."""


@app.command()
def reproduce(
    name: Annotated[ExperimentName, typer.Argument(help="Which table or figure of the paper.")],
    budget: Annotated[
        Budget,
        typer.Option(help="smoke: seconds, to see that it runs. laptop: two cores. paper: the paper's own size."),
    ] = Budget.laptop,
    out: Annotated[Path, typer.Option(help="Directory for the figure and the JSON result.")] = Path("results"),
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of the data and of everything random.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Regenerate a result of the paper, with its figure.

    Example: `orbitune reproduce fig1 --budget smoke --out results`
    """
    torch.set_num_threads(1)  # its matrices are tiny: more threads would only wait for each other
    experiment = EXPERIMENTS[name.value]
    record = experiment.run(experiment.BUDGETS[budget.value], seed, out)
    if as_json:
        typer.echo(json.dumps(record))
    else:
        show_scores(record)
    console.print(f"Result and figure: {out / name.value}.json, {out / name.value}.png", markup=False)


def show_scores(record: dict[str, Any]) -> None:
    """A table of our scores beside the paper's."""
    metrics = list(next(iter(record["paper"].values())))
    table = Table("model", *(metric.replace("_", " ") for metric in metrics), title=record["experiment"])
    for model, paper in record["paper"].items():
        ours = record["models"][model]
        table.add_row(model, *(f"{ours[metric]:.3f} (paper {paper[metric]:g})" for metric in metrics))
    Console().print(table)
    for ordering, fraction in record["fraction_of_datasets_with_ordering"].items():
        Console().print(f"{ordering.replace('_', ' ')}: {fraction:.0%} of data sets")


def main() -> None:
    """Entry point: an error made on purpose is a sentence on standard error, not a traceback."""
    try:
        app()
    except OrbituneError as error:
        console.print("[bold red]Error:[/]", Text(str(error)))
        sys.exit(2)
    except OSError as error:
        console.print("[bold red]Error:[/]", Text(f"{error.strerror or error}: {error.filename or ''}"))
        sys.exit(1)
