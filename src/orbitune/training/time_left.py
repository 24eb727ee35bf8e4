"""How long a run may still take."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PlannedLoop:
    """Steps that will be taken, unless ranges settle before; ``kind`` groups loops whose steps take equally long."""

    name: str
    steps: int
    kind: str


class TimeLeft:
    """Planned steps, times what a step of their kind has taken so far."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._plan: list[PlannedLoop] = []
        self._current: tuple[PlannedLoop, int] | None = None  # and how many of its steps are done
        self._last = 0.0
        self._spent: dict[str, tuple[float, int]] = {}  # by kind: seconds, and steps they were spent on

    def plan(self, loops: Sequence[PlannedLoop]) -> None:
        """What will happen, in this order; loops may be left out. Steps of an earlier plan were perhaps others."""
        self._plan = list(loops)
        self._spent = {}

    def start(self, name: str, first: int) -> None:
        """A loop begins at step ``first``: what was planned before it will not happen any more."""
        names = [loop.name for loop in self._plan]
        self._current = None
        if name in names:
            index = names.index(name)
            self._current = self._plan[index], first
            self._plan = self._plan[index + 1 :]
        self._last = self._clock()

    def advance(self, step: int) -> None:
        """``step`` steps of the loop are done."""
        if self._current is None:
            return
        loop, done = self._current
        seconds, steps = self._spent.get(loop.kind, (0.0, 0))
        now = self._clock()
        self._spent[loop.kind] = seconds + now - self._last, steps + step - done
        self._current, self._last = (loop, step), now

    def seconds(self) -> float | None:
        """At most so many; None as long as a kind of step that matters has not been seen.

        One that only comes at the very end is not waited for.
        """
        if self._current is None:
            return None
        loop, done = self._current
        left = [(loop.kind, loop.steps - done), *((planned.kind, planned.steps) for planned in self._plan)]
        rate = {kind: seconds / steps for kind, (seconds, steps) in self._spent.items() if steps}
        if any(kind not in rate for kind, _ in left[:-1]) or left[0][0] not in rate:
            return None
        return sum(steps * rate.get(kind, 0.0) for kind, steps in left)

    def words(self) -> str:
        """For people; nothing as long as nothing is known."""
        seconds = self.seconds()
        if seconds is None:
            return ""
        minutes = round(seconds / 60)
        if minutes < 1:
            return "less than a minute left"
        return f"at most {minutes} min left" if minutes < 120 else f"at most {round(minutes / 60)} h left"
