"""What a round of cross-fitting came to, and whether the rounds have settled."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from orbitune.orbits import Orbit


class RoundSummary:
    """Means over the second half of a round: of φ in the optimiser's coordinates, of its bounds, of the evidence.

    Of a round that was cut short before, the values of its last step.
    """

    def __init__(self) -> None:
        self.num, self.elbo = 0, 0.0
        self.parameters = torch.zeros(0)
        self.bounds: list[float] = []

    def add(self, orbit: Orbit, elbo: float, *, average: bool) -> None:
        """Take in one step: into the means, or in place of the one before."""
        parameters = torch.nn.utils.parameters_to_vector(orbit.parameters()).detach()
        bounds = [bound for pair in orbit.ranges().values() for bound in pair]
        self.num += average
        if self.num <= 1:
            self.parameters, self.bounds, self.elbo = parameters, bounds, elbo
            return
        self.parameters = self.parameters + (parameters - self.parameters) / self.num
        self.bounds = [old + (new - old) / self.num for old, new in zip(self.bounds, bounds, strict=True)]
        self.elbo += (elbo - self.elbo) / self.num

    def state_dict(self) -> dict[str, Any]:
        """Everything."""
        return dict(vars(self))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Put it back."""
        vars(self).update(state_dict)


def settled(rounds: Sequence[dict[str, Any]], tolerance: float) -> bool:
    """Whether no bound has moved by more than the tolerance over each of the last two rounds."""
    if len(rounds) < 3:
        return False
    last = [torch.tensor(summary["bounds"]) for summary in rounds[-3:]]
    return all((after - before).abs().max() < tolerance for before, after in pairwise(last))
