"""The history of a run, as paths that can be drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Segment:
    """The records of one phase (of one round), in order."""

    title: str
    records: tuple[Record, ...]

    @property
    def ranges_move(self) -> bool:
        """Whether any range changed within the phase."""
        return any(record.get("ranges") != self.records[0].get("ranges") for record in self.records)


@dataclass(frozen=True)
class Path:
    """A quantity over steps, phases joined end to end.

    Attributes:
        steps: where it was measured, counted over all phases of the path.
        values: what was measured.
        starts: the first step of each phase, with its title.
    """

    steps: tuple[float, ...]
    values: tuple[Any, ...]
    starts: tuple[tuple[float, str], ...]


def split_phases(history: list[Record]) -> list[Segment]:
    """Measurements by phase and round; events such as warnings are left out."""
    measured = [record for record in history if "phase" in record and "step" in record]
    segments = []
    for (phase, round_), records in groupby(measured, key=lambda record: (record["phase"], record.get("round"))):
        title = str(phase) if round_ is None else f"round {round_}"
        segments.append(Segment(title, tuple(records)))
    return segments


def join(segments: list[Segment], measure: Callable[[Record], Any]) -> Path:
    """What ``measure`` finds in the records of some phases, over their steps; phases that have none are left out."""
    steps: list[float] = []
    values: list[Any] = []
    starts: list[tuple[float, str]] = []
    offset = 0
    for segment in segments:
        found = [(record["step"], measure(record)) for record in segment.records]
        found = [(step, value) for step, value in found if value is not None]
        if not found:
            continue
        starts.append((float(offset), segment.title))
        steps += [float(offset + step) for step, _ in found]
        values += [value for _, value in found]
        offset += found[-1][0] + 1
    return Path(tuple(steps), tuple(values), tuple(starts))


def range_path(history: list[Record], name: str) -> Path:
    """The bounds of a range over the steps at which ranges moved."""
    moving = [segment for segment in split_phases(history) if segment.ranges_move]
    return join(moving, lambda record: record.get("ranges", {}).get(name))


def smooth(values: tuple[float, ...], window: int) -> tuple[float, ...]:
    """The mean over the last ``window`` values at each of them."""
    totals = [0.0]
    for value in values:
        totals.append(totals[-1] + value)
    return tuple((totals[i + 1] - totals[max(0, i + 1 - window)]) / min(i + 1, window) for i in range(len(values)))


def warnings_of(history: list[Record]) -> list[str]:
    """Messages of the warnings in the history, each once."""
    return list(dict.fromkeys(str(record["message"]) for record in history if record.get("event") == "warning"))
