"""Means and spreads over seeds, beside the paper's numbers: as data, on the terminal and in Markdown."""

from collections.abc import Iterable, Sequence
from statistics import mean, stdev
from typing import Any

from rich.table import Table

from orbitune.experiments.experiment import Experiment, Metric, Row

NOT_RUN = "not run yet"


def summarise(experiment: Experiment, records: Sequence[Row]) -> dict[str, Any]:
    """For every row of the experiment: seeds, cost, and for every metric mean, spread (over seeds) and the paper's."""
    rows = []
    for name, description in experiment.rows.items():
        own = [record for record in records if record["model"] == name]
        scores = {metric.key: _score(metric, name, own) for metric in experiment.metrics}
        seconds = mean(record["seconds"] for record in own) if own else None
        rows.append(
            {"model": name, "description": description, "seeds": [r["seed"] for r in own], "seconds": seconds, **scores}
        )
    return {
        "experiment": experiment.name,
        "budgets": sorted({record["budget"] for record in records}),
        "rows": rows,
        "findings": experiment.findings(records) if records else [],
    }


def mean_accuracies(records: Sequence[Row]) -> dict[str, float]:
    """Test accuracy of every row, over seeds."""
    by_row: dict[str, list[float]] = {}
    for record in records:
        by_row.setdefault(record["model"], []).append(record["test_accuracy"])
    return {name: mean(values) for name, values in by_row.items()}


def _score(metric: Metric, row: str, records: Sequence[Row]) -> dict[str, float | None]:
    values = [record[metric.key] for record in records if record.get(metric.key) is not None]
    return {
        "mean": float(mean(values)) if values else None,
        "spread": stdev(values) if len(values) > 1 else None,
        "paper": metric.paper.get(row),
    }


def header(experiment: Experiment) -> list[str]:
    """Heads of the columns."""
    columns = [f"{m.label} (paper)" if m.paper else m.label for m in experiment.metrics]
    return ["row", "what", *columns, "seeds", "cost per seed"]


def body(experiment: Experiment, summary: dict[str, Any]) -> Iterable[list[str]]:
    """One list of cells per row; rows without a record say so."""
    for row in summary["rows"]:
        cells = [_cell(metric, row[metric.key]) for metric in experiment.metrics]
        seeds = str(len(row["seeds"])) if row["seeds"] else NOT_RUN
        yield [row["model"], row["description"], *cells, seeds, duration(row["seconds"])]


def table(experiment: Experiment, summary: dict[str, Any]) -> Table:
    """For the terminal."""
    shown = Table(*header(experiment), title=experiment.title, caption=" ".join(summary["findings"]) or None)
    for cells in body(experiment, summary):
        shown.add_row(*cells)
    return shown


def markdown(experiment: Experiment, summary: dict[str, Any]) -> str:
    """For a page."""
    head = header(experiment)
    lines = [head, ["---"] * len(head), *body(experiment, summary)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _cell(metric: Metric, score: dict[str, float | None]) -> str:
    ours = "–" if score["mean"] is None else f"{score['mean']:.{metric.digits}f}"
    if score["spread"]:  # a number that is the same by construction has none
        ours += f" ± {score['spread']:.{metric.digits}f}"
    return ours if score["paper"] is None else f"{ours} ({score['paper']:g})"


def duration(seconds: float | None) -> str:
    """Seconds below two minutes, else minutes."""
    if seconds is None:
        return "–"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
