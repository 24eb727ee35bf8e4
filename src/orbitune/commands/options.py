"""Options that several commands share, and how they speak to people."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orbitune.training import LogLines, Progress, Silent, on_screen


class Budget(StrEnum):
    """How much time something may take."""

    smoke = "smoke"
    laptop = "laptop"
    paper = "paper"


Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, help="Seed of everything random.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object on standard output.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
LogFile = Annotated[Path | None, typer.Option("--log", help="Write progress as lines to this file, not to the screen.")]


def listed(values: Sequence[str] | None) -> list[str] | None:
    """The names in an option that takes several, separated by commas, given once or repeated; None if it is not."""
    return None if values is None else [name.strip() for value in values for name in value.split(",") if name.strip()]


def make_progress(quiet: bool, log: Path | None) -> Progress:
    """Progress on standard error: a live bar on a terminal, lines elsewhere; lines in a file; or nothing."""
    if quiet:
        return Silent()
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        return LogLines(Console(file=log.open("a"), width=200))
    return on_screen()
