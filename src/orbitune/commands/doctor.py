"""``orbitune doctor``: is this installation usable?"""

import json
from dataclasses import asdict

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orbitune.commands.options import Json
from orbitune.doctor import Diagnosis, diagnose


def doctor(as_json: Json = False) -> None:
    """Say what is installed, what is missing and how to get it; exit code 1 if something essential is broken.

    Nothing is changed, fetched or written. `orbitune doctor --json` is worth adding to a bug report.
    """
    diagnosis = diagnose()
    if as_json:
        typer.echo(json.dumps({"usable": not diagnosis.problems, **asdict(diagnosis)}))
    else:
        show(diagnosis)
    if diagnosis.problems:
        raise typer.Exit(1)


def show(diagnosis: Diagnosis) -> None:
    """A table of facts, then sentences about what is wrong."""
    console, data = Console(), diagnosis.data
    table = Table(show_header=False)
    for name, number in diagnosis.versions.items():
        table.add_row(name, number)
    table.add_row("threads", f"{diagnosis.threads} of {diagnosis.cores or '?'} cores (OMP_NUM_THREADS sets them)")
    table.add_row("devices", ", ".join(diagnosis.devices) + "; commands and estimators use the cpu")
    state = ("" if data.exists else "does not exist yet, ") + ("writable" if data.writable else "not writable")
    table.add_row("data directory", Text(f"{data.path} ({state})"))
    table.add_row("free disk space", "unknown" if data.free_bytes is None else f"{data.free_bytes / 2**30:,.1f} GB")
    table.add_row("data sets here", ", ".join(data.present))
    table.add_row("data sets not here", ", ".join(data.absent) + "\norbitune data fetch NAME" if data.absent else "–")
    for extra in diagnosis.extras:
        missing = f"missing {', '.join(extra.missing)}: {extra.install}" if extra.missing else "yes"
        table.add_row(f"optional: {extra.name}", Text(missing))
    console.print(table, highlight=False)
    for sentence in diagnosis.warnings:
        console.print("[bold yellow]Warning:[/]", Text(sentence))
    for sentence in diagnosis.problems:
        console.print("[bold red]Problem:[/]", Text(sentence))
    console.print("Orbitune is not usable as it is." if diagnosis.problems else "Orbitune is usable.")
