"""Training ranges a little wider than the current ones, so that the evidence can see what lies beyond."""

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.orbits import Orbit, UniformOrbit
from orbitune.random import uniform


class LookAhead(Orbit):
    """Draws of a wider orbit: every range by a factor, and one randomly chosen parameter per draw by a floor.

    With a frozen network, the evidence is best at about the ranges that the network was trained on, as long as these do
    not exceed what the data support: a network that trains on the current ranges would hold them where they are, and
    one that has never seen a transformation votes against it. Trained on wider ranges it lets them grow, until what it
    was trained on is more than the data support. Ranges near zero are widened one at a time, so that the data are not
    spoilt with all of them at once.

    Args:
        orbit: the current orbit; it is followed as it moves.
        factor: bounds are multiplied by it where that widens the range,
        floor: and that of the chosen parameter reaches at least this far to both sides, in units of its ``scales``.
    """

    def __init__(self, orbit: UniformOrbit, factor: float, floor: float):
        super().__init__()
        self.orbit, self.factor, self.floor = orbit, factor, floor
        self.names, self.units = orbit.names, orbit.units  # ty: ignore[invalid-attribute-access]

    @torch.no_grad()
    def sample_params(self, batch: int, size: int, generator: torch.Generator | None) -> Float[Tensor, "B S P"]:
        """Uniform on the wider ranges of the learned parameters; as the orbit does in the others."""
        params = self.orbit.sample_params(batch, size, generator)
        index, limit = self.orbit.learned_index, self.orbit.limit
        if not len(index):
            return params
        choice = (uniform((batch, size), generator, params) * len(index)).long()  # (B, S)
        places = torch.arange(params.shape[-1], device=params.device)
        chosen = index[choice].unsqueeze(-1) == places  # (B, S, P)
        learned = torch.isin(places, index)
        low, high = self.orbit.low, self.orbit.high
        low, high = low.minimum(self.factor * low), high.maximum(self.factor * high)  # also of ranges without zero
        floor = self.floor * self.orbit.scale
        low = torch.where(chosen, low.minimum(-floor), low).maximum(-limit)
        high = torch.where(chosen, high.maximum(floor), high).minimum(limit)
        wider = low + (high - low) * uniform(params.shape, generator, params)
        return torch.where(learned, wider, params)

    def transform(
        self, inputs: Float[Tensor, "B *event"], params: Float[Tensor, "B S P"]
    ) -> Float[Tensor, "B S *event"]:
        """As the orbit does."""
        return self.orbit.transform(inputs, params)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The current ranges, not the wider ones."""
        return self.orbit.ranges()
