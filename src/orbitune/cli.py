"""The command line: ``orbitune``."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from orbitune.commands import data, demo, doctor, export, fit, predict, report, reproduce
from orbitune.commands.app import app as live_app
from orbitune.errors import Interrupted, OrbituneError
from orbitune.machine import keep_freed_memory

app = typer.Typer(
    name="orbitune",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.command()(demo.demo)
app.command()(fit.fit)
app.command()(predict.predict)
app.command()(report.report)
app.command()(export.export)
app.command("app")(live_app)
app.command()(reproduce.reproduce)
app.command()(doctor.doctor)
app.add_typer(data.app, name="data")


def _print_version(asked: bool) -> bool:
    if asked:
        typer.echo(f"orbitune {version('orbitune')}")
        raise typer.Exit
    return asked


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Learns which data augmentation a model should be invariant to, from the training data alone."""


def main() -> None:
    """Entry point: an error made on purpose is a sentence on standard error, not a traceback."""
    keep_freed_memory()
    console = Console(stderr=True)
    try:
        app()
    except Interrupted as stop:
        console.print(Text(f"Interrupted: {stop}. Continue with the same command, and --resume if it has that."))
        sys.exit(130)
    except OrbituneError as error:
        console.print("[bold red]Error:[/]", Text(str(error)))
        sys.exit(2)
    except OSError as error:
        console.print("[bold red]Error:[/]", Text(f"{error.strerror or error}: {error.filename or ''}"))
        sys.exit(1)
