"""How the learnable bounds low ≤ ν ≤ high of L parameters are held: the optimiser's coordinates.

The orbit is the same in all of them; the path an optimiser takes is not.
"""

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from torch import Tensor, nn

from orbitune.errors import InputError

Parameterisation = Literal["direct", "reciprocal", "log"]


class Ranges(nn.Module, ABC):
    """Bounds (L,) of the learned parameters; tied low = −high if ``symmetric``."""

    def __init__(self, low: Tensor, high: Tensor, symmetric: bool):
        super().__init__()
        self.symmetric = symmetric
        self.set_bounds(low, high)

    @abstractmethod
    def set_bounds(self, low: Tensor, high: Tensor) -> None:
        """Create or overwrite the coordinates so that the bounds are these."""

    @abstractmethod
    def bounds(self) -> tuple[Tensor, Tensor]:
        """(low, high), differentiable in the coordinates."""

    @torch.no_grad()
    def clamp_(self, limit: Tensor) -> None:
        """Keep |low|, |high| ≤ limit (L,), for parameters beyond which there is nothing new (a full turn)."""
        low, high = self.bounds()
        if (low.abs() > limit).any() or (high.abs() > limit).any():
            self.set_bounds(low.clamp(-limit, limit), high.clamp(-limit, limit))

    def _set(self, **values: Tensor) -> None:
        for name, value in values.items():
            if name in self._parameters:
                self.get_parameter(name).data.copy_(value)
            else:
                self.register_parameter(name, nn.Parameter(value.detach().clone()))


class DirectRanges(Ranges):
    """The bounds themselves."""

    raw_low: nn.Parameter
    raw_high: nn.Parameter

    def set_bounds(self, low: Tensor, high: Tensor) -> None:
        """raw = bound."""
        self._set(raw_high=high) if self.symmetric else self._set(raw_low=low, raw_high=high)

    def bounds(self) -> tuple[Tensor, Tensor]:
        """bound = raw."""
        return (-self.raw_high if self.symmetric else self.raw_low), self.raw_high


class ReciprocalRanges(Ranges):
    """ξ = 1/bound (paper, Fig. 4)."""

    raw_low: nn.Parameter
    raw_high: nn.Parameter

    def set_bounds(self, low: Tensor, high: Tensor) -> None:
        """raw = 1/bound."""
        if (low == 0).any() or (high == 0).any():
            raise InputError(
                "the reciprocal parameterisation cannot represent the bound 0; "
                f"got low={low.tolist()}, high={high.tolist()}. Start at a small range such as (-0.05, 0.05)"
            )
        self._set(raw_high=1 / high) if self.symmetric else self._set(raw_low=1 / low, raw_high=1 / high)

    def bounds(self) -> tuple[Tensor, Tensor]:
        """bound = 1/raw."""
        return (-1 / self.raw_high if self.symmetric else 1 / self.raw_low), 1 / self.raw_high


class LogRanges(Ranges):
    """Logarithm of the half-width, and the centre as a fraction of it.

    A step changes a range by a factor, so narrow ranges take narrow steps, and bounds cannot cross. The centre is kept
    within one half-width of zero: the identity is always in the orbit.
    """

    raw_width: nn.Parameter
    raw_centre: nn.Parameter
    smallest = 0.01  # below this, a range is as good as zero and its logarithm would only run away

    def set_bounds(self, low: Tensor, high: Tensor) -> None:
        """raw_width = log (high − low)/2, raw_centre = (high + low)/(high − low)."""
        if (low > self.smallest).any() or (high < -self.smallest).any():
            raise InputError(
                "logarithmic coordinates keep the identity in the orbit: every range must contain 0; "
                f"got low={low.tolist()}, high={high.tolist()}. Start at such a range, or take direct coordinates"
            )
        half_width = ((high - low) / 2).clamp_min(self.smallest)
        centre = ((high + low) / 2 / half_width).clamp(-1, 1)
        self._set(raw_width=half_width.log()) if self.symmetric else self._set(
            raw_width=half_width.log(), raw_centre=centre
        )

    def bounds(self) -> tuple[Tensor, Tensor]:
        """low, high = half_width · (centre ∓ 1)."""
        half_width = self.raw_width.exp()
        centre = torch.zeros_like(half_width) if self.symmetric else self.raw_centre
        return half_width * (centre - 1), half_width * (centre + 1)

    @torch.no_grad()
    def clamp_(self, limit: Tensor) -> None:
        """Keep the half-width between ``smallest`` and the limit, the centre in the range, the bounds in the limits."""
        smallest = torch.full_like(self.raw_width, math.log(self.smallest))
        self.raw_width.data.copy_(self.raw_width.clamp(smallest, limit.log()))
        if not self.symmetric:
            room = (limit / self.raw_width.exp() - 1).clamp(0, 1)
            self.raw_centre.data.copy_(self.raw_centre.clamp(-room, room))


KINDS: dict[Parameterisation, type[Ranges]] = {
    "direct": DirectRanges,
    "reciprocal": ReciprocalRanges,
    "log": LogRanges,
}
