"""How results are printed."""

import json
import math
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from orbitune.fitting import FitResult
from orbitune.report.words import describe_range, verdict


def show_result(
    result: FitResult,
    learned: Collection[str],
    directory: Path,
    as_json: bool,
    truth: dict[str, tuple[float, float]] | None = None,
) -> None:
    """One JSON object, or a table, a verdict in words and where the files are; ``learned`` ranges were not given."""
    if as_json:
        typer.echo(json.dumps(asdict(result)))
        return
    console = Console()
    table = Table(
        "transformation",
        "learned range" if learned else "given range",
        "in words",
        *(["planted truth"] if truth is not None else []),
    )
    for name, (low, high) in result.ranges.items():
        cells = [name.replace("_", " "), f"[{low:+.2f}, {high:+.2f}]", describe_range(name, low, high)]
        if truth is not None:
            planted = truth.get(name, (0.0, 0.0))
            cells.append(describe_range(name, *planted) if any(planted) else "none")
        table.add_row(*cells)
    console.print(table)
    console.print(verdict(result.ranges, learned), highlight=False)
    for name, value in (
        ("plain network", result.plain_network_accuracy),
        ("invariant model", result.test_accuracy),
    ):
        if value is not None:
            console.print(f"Test accuracy of the {name}: [bold]{100 * value:.1f} %[/]", highlight=False)
    if result.elbo_per_datum is not None and math.isfinite(result.elbo_per_datum):
        console.print(f"Log evidence per image: {result.elbo_per_datum:.3f} nats", highlight=False)
    console.print(f"Took {result.seconds:.0f} seconds.", highlight=False)
    console.print(f"Model, pictures (orbit.png, ranges.png) and history: {directory}", markup=False, highlight=False)
