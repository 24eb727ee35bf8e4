"""Training ranges a little wider than the current ones, so that the evidence can see what lies beyond."""

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.orbits import Orbit, UniformOrbit
from orbitune.random import uniform


class LookAhead(Orbit):
    """Draws of an orbit in which one randomly chosen parameter per draw comes from a wider range.

    A network that has never seen a transformation answers it badly, and the evidence, which is honest, then votes
    against it. Looking ahead in one parameter at a time prepares the network for the next widening without committing
    to it, and without spoiling the data with all widenings at once.

    Args:
        orbit: the current orbit; it is followed as it moves.
        factor: the wider range is this multiple of the current one,
        floor: but reaches at least this far to both sides.
    """

    def __init__(self, orbit: UniformOrbit, factor: float, floor: float):
        super().__init__()
        self.orbit, self.factor, self.floor = orbit, factor, floor
        self.names, self.units = orbit.names, orbit.units  # ty: ignore[invalid-attribute-access]

    @torch.no_grad()
    def sample_params(self, batch: int, size: int, generator: torch.Generator | None) -> Float[Tensor, "B S P"]:
        """The orbit's own draw, with one entry redrawn from its wider range."""
        params = self.orbit.sample_params(batch, size, generator)
        index, limit = self.orbit.learned_index, self.orbit.limit
        if not len(index):
            return params
        low = (self.orbit.low * self.factor).clamp(max=-self.floor).maximum(-limit)
        high = (self.orbit.high * self.factor).clamp(min=self.floor).minimum(limit)
        wider = low + (high - low) * uniform(params.shape, generator, params)
        choice = (uniform((batch, size), generator, params) * len(index)).long()  # (B, S)
        chosen = index[choice].unsqueeze(-1) == torch.arange(params.shape[-1], device=params.device)
        return torch.where(chosen, wider, params)

    def transform(
        self, inputs: Float[Tensor, "B *event"], params: Float[Tensor, "B S P"]
    ) -> Float[Tensor, "B S *event"]:
        """As the orbit does."""
        return self.orbit.transform(inputs, params)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The current ranges, not the wider ones."""
        return self.orbit.ranges()
