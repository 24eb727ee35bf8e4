"""Ctrl-C at a chosen moment; the run is told to the progress once both exist."""

from orbitune.training import Run, Silent


class StopAfter(Silent):
    """After a number of steps, counted over all loops."""

    run: Run

    def __init__(self, steps):
        self.left = steps

    def advance(self, step):
        self.left -= 1
        if self.left == 0:
            self.run._request_stop(0, None)


class StopIn(Silent):
    """In a loop."""

    run: Run

    def __init__(self, name):
        self.name = name

    def start(self, phase, total, first):
        if phase == self.name:
            self.run._request_stop(0, None)
