"""What an experiment is: rows, each with a configuration per budget, a way to compute one, and a figure of all."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from orbitune.training import Progress, Run

Row = dict[str, Any]
"""The JSON record of one row and seed."""


@dataclass(frozen=True)
class Metric:
    """A number in every row.

    Attributes:
        key: where it stands in the row's record.
        label: the head of its column.
        paper: the paper's value by row, where it gives one.
        digits: after the decimal point.
    """

    key: str
    label: str
    paper: Mapping[str, float] = field(default_factory=dict)
    digits: int = 4


def accuracy_metric(paper: Mapping[str, float] | None = None) -> Metric:
    """The test accuracy, which most rows report."""
    return Metric("test_accuracy", "test accuracy", paper or {})


@dataclass(frozen=True)
class Task:
    """One row and seed that is to be computed.

    Attributes:
        config: the row's configuration.
        seed: of everything random in it.
        work: a directory that outlives interruptions, for checkpoints.
        picture: pictures of the row are saved as this path with ``-name.png`` at its end.
        progress: who is told what happens.
    """

    config: Any
    seed: int
    work: Path
    picture: Path
    progress: Progress

    def open_run(self) -> Run:
        """A run in the work directory that goes on where it was interrupted."""
        return Run(self.work, seed=self.seed, resume=True, progress=self.progress)

    def keep_picture(self, path: Path) -> None:
        """Put a picture from the work directory beside the row's record."""
        self.picture.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, self.picture.with_name(f"{self.picture.name}-{path.name}"))


@dataclass(frozen=True)
class Budget:
    """How much of an experiment: how many seeds, and the configuration (a dataclass) of every row."""

    num_seeds: int
    configs: Mapping[str, Any]


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes:
        name: on the command line, and of its files.
        title: for people, with its place in the paper.
        question: what it is to show, in a sentence or two.
        rows: what each row is, by name; the order is that of the table.
        budgets: "smoke", "laptop" and "paper".
        compute: the result of a row, as what JSON can hold.
        figure: drawn from the records of the rows that are there (at least one), without the data.
        metrics: the columns of the table.
        pictured: rows whose orbits are shown on the page.
        findings: what the records say beyond the table, in sentences.
        differences: where we do otherwise than the paper.
    """

    name: str
    title: str
    question: str
    rows: Mapping[str, str]
    budgets: Mapping[str, Budget]
    compute: Callable[[Task], Row]
    figure: Callable[[Sequence[Row]], Figure]
    metrics: tuple[Metric, ...] = (accuracy_metric(),)
    pictured: tuple[str, ...] = ()
    findings: Callable[[Sequence[Row]], list[str]] = lambda records: []
    differences: tuple[str, ...] = ()
