"""Minibatches without replacement, whose place in the epoch is part of a checkpoint."""

from typing import Any

import torch
from torch import Tensor

from orbitune.random import permutation


class Minibatches:
    """Indices of minibatches, epoch after epoch; an incomplete last batch is carried over into the next epoch."""

    def __init__(self, num_data: int, batch_size: int, generator: torch.Generator):
        self.num_data, self.batch_size, self.generator = num_data, min(batch_size, num_data), generator
        self.queue = torch.empty(0, dtype=torch.long)

    def next(self) -> Tensor:
        """The next B indices."""
        if len(self.queue) < self.batch_size:
            order = permutation(self.num_data, self.generator, torch.device("cpu"))
            # What is left of the old epoch comes first, and not again in this batch.
            left = torch.isin(order, self.queue[: self.batch_size])
            self.queue = torch.cat((self.queue, order[~left], order[left]))
        batch, self.queue = self.queue.split((self.batch_size, len(self.queue) - self.batch_size))
        return batch

    def state_dict(self) -> dict[str, Any]:
        """What is left of the epoch."""
        return {"queue": self.queue}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from there."""
        self.queue = state_dict["queue"]
