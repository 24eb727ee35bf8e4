"""Progress for people: what phase, which step, the evidence and the ranges as they move, time left."""

import logging
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from orbitune.training.time_left import PlannedLoop, TimeLeft

logger = logging.getLogger(__name__)


class Silent:
    """Says nothing, and is what the other kinds refine."""

    def plan(self, loops: Sequence[PlannedLoop]) -> None:
        """What the whole run will do, as far as it is known."""

    def start(self, phase: str, total: int, first: int) -> None:
        """A phase of ``total`` steps begins, at step ``first``."""

    def advance(self, step: int) -> None:
        """``step`` steps of the phase are done."""

    def show(self, values: dict[str, Any]) -> None:
        """New measurements: ELBO terms, ranges, …"""

    def finish(self) -> None:
        """The phase is done."""

    def message(self, text: str) -> None:
        """A sentence for the user."""

    def close(self) -> None:
        """Nothing more will come."""


Progress = Silent


class LogLines(Silent):
    """One line per phase and per measurement, at most every few seconds: for log files."""

    def __init__(self, console: Console, seconds: float = 5.0):
        self.console, self.seconds, self.time_left = console, seconds, TimeLeft()
        self.phase, self.last, self.step, self.total = "", 0.0, 0, 0

    def plan(self, loops: Sequence[PlannedLoop]) -> None:
        """For the time left."""
        self.time_left.plan(loops)

    def start(self, phase: str, total: int, first: int) -> None:
        """Announce the phase."""
        self.phase, self.total, self.step = phase, total, first
        self.time_left.start(phase, first)
        left = self.time_left.words()
        self.message(
            f"{phase}: {total} steps" + (f", from step {first}" if first else "") + (f"; {left}" if left else "")
        )

    def advance(self, step: int) -> None:
        """Remember where we are."""
        self.step = step
        self.time_left.advance(step)

    def show(self, values: dict[str, Any]) -> None:
        """A line, if the last one is old enough."""
        if time.monotonic() - self.last > self.seconds:
            self.last = time.monotonic()
            self.message(f"{self.phase} {self.step}/{self.total}: {describe(values)}")

    def message(self, text: str) -> None:
        """Print."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


class LiveBar(Silent):
    """A bar with the phase, the time left in it and in the run, the evidence and the widest ranges."""

    def __init__(self, console: Console):
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.fields[measured]}"),
            console=console,
            transient=True,
        )
        self.task: TaskID | None = None
        self.measured, self.time_left = "", TimeLeft()

    def plan(self, loops: Sequence[PlannedLoop]) -> None:
        """For the time left."""
        self.time_left.plan(loops)

    def start(self, phase: str, total: int, first: int) -> None:
        """A new bar."""
        self.bar.start()
        self.time_left.start(phase, first)
        left = self.time_left.words()
        self.task = self.bar.add_task(phase, total=total, completed=first, measured=self.measured, left=left)

    def advance(self, step: int) -> None:
        """Move the bar."""
        self.time_left.advance(step)
        if self.task is not None:
            self.bar.update(self.task, completed=step, left=self.time_left.words())

    def show(self, values: dict[str, Any]) -> None:
        """Update the numbers beside the bar."""
        self.measured = describe(values)
        if self.task is not None:
            self.bar.update(self.task, measured=self.measured)

    def finish(self) -> None:
        """Remove the bar."""
        if self.task is not None:
            self.bar.remove_task(self.task)
            self.task = None

    def message(self, text: str) -> None:
        """Print above the bar."""
        self.bar.console.print(text, highlight=False, markup=False)

    def close(self) -> None:
        """Give the terminal back."""
        self.bar.stop()


def on_screen() -> Progress:
    """Progress on standard error: a live bar on a terminal, lines elsewhere."""
    console = Console(stderr=True)
    return LiveBar(console) if console.is_terminal else LogLines(console)


def describe(values: dict[str, Any]) -> str:
    """Measurements in one line: numbers as they are, and the three widest ranges."""
    parts = [f"{name} {value:.3f}" for name, value in values.items() if isinstance(value, float)]
    ranges = sorted(values.get("ranges", {}).items(), key=lambda item: item[1][0] - item[1][1])
    parts += [f"{name} [{low:.2f}, {high:.2f}]" for name, (low, high) in ranges[:3]]
    if "message" in values:
        parts.append(str(values["message"]))
    return ", ".join(parts)
