"""Fits that the app starts: each a process of its own, watched through the files of its run directory."""

import os
import signal
import subprocess
import sys
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Any

from orbitune.app.refusal import Refused
from orbitune.app.uploads import UPLOADS, checked_side, new_directory
from orbitune.fitting import CONFIG
from orbitune.orbits import AffineOrbit
from orbitune.report.plots import read_history
from orbitune.report.sections import describe_ranges
from orbitune.report.words import verdict_sentences

PROGRESS, OUTPUT = "progress.log", "fit.log"
BUDGETS = {
    "smoke": "a trial run: seconds, learns next to nothing",
    "laptop": "a laptop: minutes to an hour",
    "paper": "the sizes of the paper: hours",
}


class Status(StrEnum):
    """Where a fit is in its life."""

    running = "running"
    stopping = "stopping"
    stopped = "stopped"
    failed = "failed"
    finished = "finished"


class Fit:
    """``orbitune fit`` as a process, in a session of its own: Ctrl-C in our terminal is not its business."""

    def __init__(self, data: str, directory: Path, options: list[str]):
        self.data, self.directory, self.options = data, directory, options
        self._stop_asked = False
        self._process = self._launch([*options, "--", data])

    def _launch(self, arguments: list[str]) -> subprocess.Popen[bytes]:
        places = ["--out", str(self.directory), "--log", str(self.directory / PROGRESS)]
        command = [sys.executable, "-m", "orbitune", "fit", *places, *arguments]
        with (self.directory / OUTPUT).open("wb") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | {"COLUMNS": "2000"},  # a message is one line, however long
            )

    @property
    def status(self) -> Status:
        """What the process says about itself."""
        code = self._process.poll()
        if code is None:
            return Status.stopping if self._stop_asked else Status.running
        if code == 0:
            return Status.finished
        return Status.stopped if self._stop_asked else Status.failed

    @property
    def active(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask it to save and end after the step it is in; asking twice would end it at once, so we do not."""
        if self.active and not self._stop_asked:
            self._stop_asked = True
            if os.name == "nt":  # there is no other signal; what was saved last is kept
                self._process.terminate()
            else:
                self._process.send_signal(signal.SIGINT)

    def resume(self) -> None:
        """Go on where it stopped; from the beginning, if it had not got as far as its configuration."""
        self._stop_asked = False
        begun = (self.directory / CONFIG).exists()
        self._process = self._launch(["--resume"] if begun else [*self.options, "--", self.data])

    def wait(self, seconds: float) -> None:
        """Until it has ended; after so many seconds it is ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def describe(self, known: int = -1) -> dict[str, Any]:
        """Where it is. ``known`` is the number of measurements the page has: with no more of them, no new charts."""
        status = self.status
        history = self._history()
        measured = [record for record in history if record.get("ranges")]
        ranges = {name: (low, high) for name, (low, high) in (measured[-1]["ranges"] if measured else {}).items()}
        moving = [name for name, bounds in ranges.items() if any(bounds)]
        return {
            "status": status.value,
            "name": self.directory.name,
            "directory": str(self.directory.resolve()),
            "data": self.data,
            "seconds": history[-1]["seconds"] if history else 0.0,
            "message": self._error() if status == Status.failed else self._last_line(),
            "verdict": " ".join(verdict_sentences(ranges, moving)) if moving else "",
            "num_measured": len(measured),
            "ranges": None if len(measured) == known else describe_ranges(ranges, moving, history, None),
        }

    def _history(self) -> list[dict[str, Any]]:
        try:
            return read_history(self.directory)
        except FileNotFoundError:
            return []

    def _last_line(self) -> str:
        try:
            lines = (self.directory / PROGRESS).read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return lines[-1] if lines else ""

    def _error(self) -> str:
        """The sentence after "Error:" that the program printed, or where to look."""
        before, found, sentence = (self.directory / OUTPUT).read_text(errors="replace").rpartition("Error: ")
        begins_a_line = before[-1:] in ("", "\n")  # as "KeyError: " of a traceback does not
        if found and begins_a_line and sentence.strip():
            return " ".join(sentence.split())
        return f"the fit ended unexpectedly (code {self._process.poll()}); what it said is in {self.directory / OUTPUT}"


class Fits:
    """At most one fit at a time: two would only share the cores."""

    def __init__(self, work: Path):
        self.work = work
        self.current: Fit | None = None
        self._lock = Lock()
        self._closed = False

    def start(self, data: str, values: dict[str, Any]) -> None:
        """Start a fit of checked data; ``values`` come from the page."""
        options = fit_options(values)
        with self._lock:
            self._refuse_a_second()
            self.current = Fit(data, new_directory(self.work, _name_of(data, self.work)), options)

    def resume(self) -> None:
        """Continue the fit that was stopped."""
        with self._lock:
            self._refuse_a_second()
            fit = self._existing()
            if fit.status != Status.stopped:
                raise Refused(f"only a stopped fit can go on; this one is {fit.status}", HTTPStatus.CONFLICT)
            fit.resume()

    def stop(self) -> None:
        """Ask the fit to save and end."""
        with self._lock:
            fit = self._existing()
            if not fit.active:
                raise Refused(f"there is nothing to stop: the fit is {fit.status}", HTTPStatus.CONFLICT)
            fit.stop()

    def close(self, seconds: float = 60.0) -> None:
        """Let a running fit save and end, and start no other."""
        with self._lock:
            self._closed = True
        if self.current is not None and self.current.active:
            self.current.stop()
            self.current.wait(seconds)

    def _existing(self) -> Fit:
        if self.current is None:
            raise Refused("no fit has been started here", HTTPStatus.CONFLICT)
        return self.current

    def _refuse_a_second(self) -> None:
        if self._closed:
            raise Refused("the app is ending", HTTPStatus.SERVICE_UNAVAILABLE)
        if self.current is not None and self.current.active:
            raise Refused("a fit is running: stop it first, or wait for it", HTTPStatus.CONFLICT)


def _name_of(data: str, work: Path) -> str:
    """What to call a run after: a data set, a folder, or a zip that was unpacked under ``work``."""
    path = Path(data)
    for parent in path.parents:
        if parent.parent.resolve() == (work / UPLOADS).resolve():  # photos-2, from the second photos.zip
            return parent.name.rpartition("-")[0]
    return path.stem


def fit_options(values: dict[str, Any]) -> list[str]:
    """Options for ``orbitune fit``, each of them checked: nothing of the page's own wording."""
    budget, size, orbit = values.get("budget", "laptop"), values.get("train_size"), values.get("orbit")
    side = checked_side(values.get("resize"))
    if budget not in BUDGETS:
        raise Refused(f"unknown budget {budget!r}; choose one of: {', '.join(BUDGETS)}")
    options = ["--budget", budget]
    if side is not None:
        options += ["--resize", str(side)]
    if size is not None:
        if not isinstance(size, int) or isinstance(size, bool) or size < 2:
            raise Refused(f"the number of training images must be a whole number ≥ 2, got {size!r}")
        options += ["--train-size", str(size)]
    if orbit is not None:
        if not isinstance(orbit, list) or not orbit or any(name not in AffineOrbit.names for name in orbit):
            raise Refused(f"choose at least one transformation of: {', '.join(AffineOrbit.names)}; got {orbit!r}")
        options += ["--orbit", ",".join(orbit)]
    return options
