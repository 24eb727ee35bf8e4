"""Figures that several experiments share, drawn from records alone."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbitune.experiments.experiment import Row


def draw_accuracies(axis: Axes, records: Sequence[Row]) -> None:
    """A dot per row and seed, and a ring where the paper is."""
    names = list(dict.fromkeys(record["model"] for record in records))
    for record in records:
        axis.plot(record["test_accuracy"], names.index(record["model"]), "o", color="C0", ms=4, label="ours")
        if record.get("paper_accuracy") is not None:
            paper = record["paper_accuracy"]
            axis.plot(paper, names.index(record["model"]), "o", mfc="none", color="C3", ms=8, label="paper")
    axis.set(yticks=range(len(names)), yticklabels=names, xlabel="test accuracy", ylim=(len(names) - 0.5, -0.5))
    axis.grid(axis="x", alpha=0.3)
    legend_once(axis)


def draw_ranges(axis: Axes, records: Sequence[Row], name: str) -> None:
    """The range of one parameter over the time of each row's run, one colour per row."""
    models = list(dict.fromkeys(record["model"] for record in records))
    for record in records:
        over_time = record.get("ranges_over_time", {})
        if name not in over_time:
            continue
        colour = f"C{models.index(record['model'])}"
        low, high = over_time[name]["low"], over_time[name]["high"]
        minutes = [seconds / 60 for seconds in over_time["seconds"]]
        axis.plot(minutes, high, color=colour, label=record["model"])
        axis.plot(minutes, low, color=colour)
    axis.set(xlabel="minutes", ylabel=f"range of {name.replace('_', ' ')}")
    axis.axhline(0, color="0.7", lw=0.5)
    legend_once(axis)


def accuracies_and_ranges(records: Sequence[Row], parameters: Sequence[str] = ("rotation", "translate_x")) -> Figure:
    """Accuracies of all rows, and ranges over time of those that learned any."""
    figure = Figure(figsize=(4 * (1 + len(parameters)), 3.2), layout="constrained")
    axes = figure.subplots(1, 1 + len(parameters))
    draw_accuracies(axes[0], records)
    for axis, name in zip(axes[1:], parameters, strict=True):
        draw_ranges(axis, records, name)
    return figure


def ranges_over_time(history: Sequence[dict[str, Any]], num_points: int = 120) -> dict[str, Any]:
    """The learned ranges in a run's history as columns, thinned: {"seconds": […], name: {"low": […], "high": […]}}.

    Moments at which nothing moved, and parameters that never did, are left out.
    """
    told = [line for line in history if line.get("ranges")]
    moments = told[:1] + [line for before, line in pairwise(told) if line["ranges"] != before["ranges"]]
    if not moments:
        return {}
    last = len(moments) - 1
    kept = [moments[round(i * last / (num_points - 1))] for i in range(num_points)] if last >= num_points else moments
    columns: dict[str, Any] = {"seconds": [round(line["seconds"], 1) for line in kept]}
    for name in kept[-1]["ranges"]:
        low, high = zip(*(line["ranges"].get(name, (0.0, 0.0)) for line in kept), strict=True)
        if len(set(low)) > 1 or len(set(high)) > 1:
            columns[name] = {side: [round(b, 4) for b in bounds] for side, bounds in (("low", low), ("high", high))}
    return columns


def legend_once(axis: Axes) -> None:
    """A legend without repetitions, if there is anything to say."""
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    if handles:
        axis.legend(handles.values(), handles.keys(), fontsize=7, frameon=False)
