"""``orbitune report``: what a run has learned, as a page to look at."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orbitune.commands.options import Json
from orbitune.report.page import write_report


def report(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    data: Annotated[
        str | None,
        typer.Argument(
            help="Score the model on this data set (a name, a folder of images, or an .npz; its test part if any). "
            "Default: the test predictions that the fit has left in the run directory."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The HTML file; by default report.html in the run directory.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a page about a run: verdict, ranges, orbits, what-if strips, scores, evidence, cost.

    The page is one HTML file that needs nothing else: open it in a browser, print it, or send it to somebody.

    Examples:

    `orbitune report run` writes run/report.html

    `orbitune report run more-photos/ --out report.html` scores the model on other images
    """
    written = write_report(run, out, data)
    if as_json:
        typer.echo(json.dumps(written.to_dict()))
        return
    console = Console()
    console.print(written.verdict, highlight=False, markup=False)
    console.print(f"Report: {written.path}", highlight=False, markup=False, soft_wrap=True)
