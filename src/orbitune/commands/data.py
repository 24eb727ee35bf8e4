"""``orbitune data``: what there is to learn from."""

from typing import Annotated

import typer
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table

from orbitune.data import data_dir, dataset_table, fetch

app = typer.Typer(help="Data sets: which there are, and how to get them.", no_args_is_help=True)


@app.command("list")
def list_datasets() -> None:
    """Known data sets, and which of them are here."""
    rows = dataset_table()
    table = Table("name", "here", "size", "licence", "how to get it")
    for row in rows:
        size = decimal(row.size) if row.size else ""
        table.add_row(row.name, "yes" if row.present else "no", size, row.licence, row.how_to_get)
    console = Console()
    console.print(table)
    console.print(f"Data directory (ORBITUNE_DATA): {data_dir()}", markup=False, highlight=False)


@app.command("fetch")
def fetch_dataset(
    name: Annotated[str, typer.Argument(help="The name of a data set, as in `orbitune data list`.")],
) -> None:
    """Download a data set into the data directory; an interrupted download goes on where it stopped."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, object] = {}

        def show(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = bars.add_task(file, total=total)
            bars.update(tasks[file], completed=done, total=total)  # ty: ignore[invalid-argument-type]

        paths = fetch(name, progress=show)
    for path in paths:
        typer.echo(path)
