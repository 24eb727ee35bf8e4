"""Progress for people: what phase, which step, the evidence and the ranges as they move, time left."""

import logging
import time
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

logger = logging.getLogger(__name__)


class Silent:
    """Says nothing, and is what the other kinds refine."""

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
        self.console, self.seconds = console, seconds
        self.phase, self.last, self.step, self.total = "", 0.0, 0, 0

    def start(self, phase: str, total: int, first: int) -> None:
        """Announce the phase."""
        self.phase, self.total, self.step = phase, total, first
        self.message(f"{phase}: {total} steps" + (f", from step {first}" if first else ""))

    def advance(self, step: int) -> None:
        """Remember where we are."""
        self.step = step

    def show(self, values: dict[str, Any]) -> None:
        """A line, if the last one is old enough."""
        if time.monotonic() - self.last > self.seconds:
            self.last = time.monotonic()
            self.message(f"{self.phase} {self.step}/{self.total}: {describe(values)}")

    def message(self, text: str) -> None:
        """Print."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


class LiveBar(Silent):
    """A bar with the phase, the evidence, the widest ranges and the time left."""

    def __init__(self, console: Console):
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[measured]}"),
            console=console,
            transient=True,
        )
        self.task: TaskID | None = None
        self.measured = ""

    def start(self, phase: str, total: int, first: int) -> None:
        """A new bar."""
        self.bar.start()
        self.task = self.bar.add_task(phase, total=total, completed=first, measured=self.measured)

    def advance(self, step: int) -> None:
        """Move the bar."""
        if self.task is not None:
            self.bar.update(self.task, completed=step)

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
