"""Training as phases in a run that survives interruption."""

from orbitune.training.checkpoint import load_state, save_state
from orbitune.training.minibatches import Minibatches
from orbitune.training.phases import Phase, Schedule
from orbitune.training.progress import LiveBar, LogLines, Progress, Silent, on_screen
from orbitune.training.run import Run
from orbitune.training.time_left import PlannedLoop, TimeLeft
from orbitune.training.trainer import train

__all__ = [
    "LiveBar",
    "LogLines",
    "Minibatches",
    "Phase",
    "PlannedLoop",
    "Progress",
    "Run",
    "Schedule",
    "Silent",
    "TimeLeft",
    "load_state",
    "on_screen",
    "save_state",
    "train",
]
