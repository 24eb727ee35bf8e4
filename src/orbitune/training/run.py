"""A run: a directory, a generator, and a program that can be killed at any moment and resumed.

A learner is ordinary code from top to bottom. It declares what it changes (:meth:`Run.track`), wraps loops in
:meth:`Run.steps`, and computations that decide its course in :meth:`Run.once`. On resume the same code runs again:
steps that were finished are skipped, decisions are remembered, and at the first unfinished step everything tracked is
put back. Whatever is random must happen in a tracked object, in ``once`` or in ``steps``.
"""

import json
import logging
import math
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch

from orbitune.errors import CheckpointError, InputError, Interrupted
from orbitune.machine import has_bfloat16_units
from orbitune.training.checkpoint import load_state, save_state
from orbitune.training.progress import Progress, Silent
from orbitune.training.time_left import PlannedLoop

T = TypeVar("T")
CHECKPOINT, HISTORY = "checkpoint.safetensors", "history.jsonl"


@runtime_checkable
class Stateful(Protocol):
    """Anything with a state: modules, optimisers, minibatches."""

    def state_dict(self) -> dict[str, Any]:
        """The state, as nested dicts of tensors and numbers."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Put a state back."""
        ...


class Run:
    """The life of one fit.

    Args:
        directory: where checkpoints and history go; None keeps nothing.
        seed: of the run's generator, the only source of randomness.
        resume: continue from the directory's checkpoint, if there is one.
        progress: who is told what happens.
        save_seconds: time between checkpoints, by default ORBITUNE_SAVE_SECONDS or 20. When they fall does not change
            the result.
        time_limit: seconds after which loops are cut short, all sessions together; see :meth:`within`. What was learned
            then depends on the machine. None takes all steps.

    Attributes:
        generator: the source of randomness.
        num_steps: steps taken in all loops, over all sessions.
        history: what was logged, over all sessions.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        seed: int = 0,
        resume: bool = False,
        progress: Progress | None = None,
        save_seconds: float | None = None,
        time_limit: float | None = None,
    ):
        self.directory, self.progress = directory, progress or Silent()
        self.save_seconds = float(os.environ.get("ORBITUNE_SAVE_SECONDS", 20)) if save_seconds is None else save_seconds
        self.generator = torch.Generator().manual_seed(seed)
        self._tracked: dict[str, Stateful] = {}
        self._remembered: dict[str, Any] = {}
        self._finished: list[str] = []
        self._begun: set[str] = set()
        self._position: tuple[str, int] | None = None
        self._pending: dict[str, Any] | None = None
        self._earlier_seconds, self._started, self._saved_at = 0.0, time.monotonic(), time.monotonic()
        self._deadline = math.inf if time_limit is None else time_limit
        self._loop_started = 0.0
        self._stop_requested = False
        self._history_bytes = 0
        self.num_steps = 0
        self.history: list[dict[str, Any]] = []
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
            self._open(directory, seed, resume)

    def _open(self, directory: Path, seed: int, resume: bool) -> None:
        checkpoint, history = directory / CHECKPOINT, directory / HISTORY
        if not resume:
            if checkpoint.exists():
                raise CheckpointError(
                    f"{directory} already holds a run: resume it (--resume) or choose another directory"
                )
            history.write_bytes(b"")
            return
        if not checkpoint.exists():  # stopped before its first checkpoint: start from the beginning
            history.write_bytes(b"")
            return
        state = load_state(checkpoint)
        if state["seed"] != seed:
            raise CheckpointError(f"{directory} was started with seed {state['seed']}, not {seed}")
        self._pending = state
        self._remembered, self._finished = state["remembered"], state["finished"]
        self._earlier_seconds, self._history_bytes = state["seconds"], state["history_bytes"]
        self.num_steps = state.get("num_steps", 0)
        with history.open("r+b") as file:  # lines after the checkpoint will be written again
            file.truncate(self._history_bytes)
        self.history = [json.loads(line) for line in history.read_bytes().splitlines()]

    @property
    def seconds(self) -> float:
        """Time spent in this run, over all its sessions."""
        return self._earlier_seconds + time.monotonic() - self._started

    @property
    def late(self) -> bool:
        """Whether the time for what is going on has run out."""
        return self.seconds >= self._deadline

    @contextmanager
    def within(self, share: float) -> Generator[None]:
        """Leave the loops inside only this share of the time that is left, so that what follows has some too."""
        outer = self._deadline
        self._deadline = self.seconds + share * (outer - self.seconds)
        try:
            yield
        finally:
            self._deadline = outer

    def pace(self, step: int, total: int) -> int | float:
        """The step that a schedule should believe in: ``step``, or further on if the loop will be cut short."""
        if math.isinf(self._deadline):
            return step
        spent, allowed = self.seconds - self._loop_started, self._deadline - self._loop_started
        by_time = total * spent / allowed if allowed > 0 else total
        return min(max(step, by_time), total - 1)

    def plan(self, loops: Sequence[PlannedLoop]) -> None:
        """Say what will be done, for the time left; what was finished before is not done again."""
        self.progress.plan([loop for loop in loops if loop.name not in self._finished])

    def track(self, name: str, item: Stateful) -> None:
        """Keep the state of ``item`` in every checkpoint from now on."""
        self._tracked[name] = item

    def untrack(self, name: str) -> None:
        """Forget an item that is no longer needed."""
        self._tracked.pop(name, None)

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """The result of ``compute``, which is remembered in checkpoints and not computed again on resume.

        Results are tensors, numbers, strings, or dicts and lists of these.
        """
        if name not in self._remembered:
            self._restore()
            self._remembered[name] = compute()
        return self._remembered[name]

    def network_precision(self, device: torch.device) -> torch.autocast:
        """For what networks compute: bfloat16 where the device has units for it. Decided once in the life of a run."""
        bfloat16 = self.once("bfloat16", lambda: has_bfloat16_units(device))
        return torch.autocast(device.type, torch.bfloat16, enabled=bfloat16)

    def steps(self, name: str, total: int, **items: Stateful) -> Iterator[int]:
        """Yield 0 … total−1, saving now and then between steps; ``items`` are tracked for the duration.

        ``name`` must be unique within the run. A stop that was asked for takes effect between two steps. Under a time
        limit there may be fewer steps, but at least one.
        """
        if name in self._begun:  # it would be skipped, as what an earlier session has finished is
            raise InputError(f"a run has one loop of each name, and this one has had {name!r} already: choose another")
        self._begun.add(name)
        if name in self._finished:
            return
        for key, item in items.items():
            self.track(key, item)
        first = self._restore(name)
        self._loop_started = self.seconds
        self.progress.start(name, total, first)
        for step in range(first, total):
            if step and self.late:
                self.progress.message(f"{name}: cut short after {step} of {total} steps by the time limit")
                break
            yield step
            self._position = (name, step + 1)
            self.num_steps += 1
            self.progress.advance(step + 1)
            if self._stop_requested:
                self.save()
                raise Interrupted(f"stopped at step {step + 1} of {total} of {name!r}, as asked; everything is saved")
            if time.monotonic() - self._saved_at > self.save_seconds:
                self.save()
        for key in items:
            self.untrack(key)
        self._finished.append(name)
        self._position = None
        self.progress.finish()

    def restore(self) -> None:
        """Put everything tracked back now: for a program that has found all its steps finished."""
        self._restore()

    def _restore(self, name: str | None = None) -> int:
        """Put everything tracked back, if that is still to be done; the step at which ``name`` is to go on."""
        if self._pending is None:
            return 0
        state, self._pending = self._pending, None
        for key, item_state in state["tracked"].items():
            if key not in self._tracked:
                raise CheckpointError(
                    f"the checkpoint holds {key!r}, which this program does not have at this point: it was written "
                    "with other settings, or by another version of Orbitune. Start anew in another directory"
                )
            self._tracked[key].load_state_dict(item_state)
        self.generator.set_state(state["generator"])
        position = state["position"]
        return position[1] if position and position[0] == name else 0

    def save(self) -> None:
        """Write a checkpoint."""
        self._saved_at = time.monotonic()
        if self.directory is None:
            return
        state = {
            "seed": self.generator.initial_seed(),
            "tracked": {name: item.state_dict() for name, item in self._tracked.items()},
            "generator": self.generator.get_state(),
            "remembered": self._remembered,
            "finished": self._finished,
            "position": self._position,
            "seconds": self.seconds,
            "history_bytes": self._history_bytes,
            "num_steps": self.num_steps,
        }
        save_state(self.directory / CHECKPOINT, state)

    def log(self, **values: Any) -> None:
        """Add a line to the history and show it."""
        self.progress.show(values)
        self.history.append({"seconds": round(self.seconds, 3), **values})
        if self.directory is None:
            return
        line = json.dumps(self.history[-1]).encode() + b"\n"
        with (self.directory / HISTORY).open("ab") as file:
            file.write(line)
        self._history_bytes += len(line)

    @contextmanager
    def active(self) -> Generator["Run"]:
        """While active, Ctrl-C stops between steps with everything saved; the library's warnings go to the history.

        After the last step it takes effect at the end, so that whoever has more to do does not go on.
        """
        handler = _HistoryHandler(self)
        logger = logging.getLogger("orbitune")
        logger.addHandler(handler)
        previous = signal.getsignal(signal.SIGINT)
        try:
            signal.signal(signal.SIGINT, self._request_stop)
            owns_signal = True
        except ValueError:  # not in the main thread: somebody else handles Ctrl-C
            owns_signal = False
        try:
            yield self
            if self._stop_requested:
                self.save()
                raise Interrupted("stopped after the last step, as asked; everything is saved")
        finally:
            logger.removeHandler(handler)
            if owns_signal:
                signal.signal(signal.SIGINT, previous)
            self.progress.close()

    def _request_stop(self, signum: int, frame: object) -> None:
        if self._stop_requested:  # the second time, stop at once
            raise KeyboardInterrupt
        self._stop_requested = True
        self.progress.message("Stopping after this step (Ctrl-C again to stop at once) …")


class _HistoryHandler(logging.Handler):
    """Jitter and other warnings of the library, as events in the history."""

    def __init__(self, run: Run):
        super().__init__(logging.WARNING)
        self.run = run

    def emit(self, record: logging.LogRecord) -> None:
        self.run.log(event="warning", source=record.name, message=record.getMessage())
