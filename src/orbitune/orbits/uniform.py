"""Orbits whose parameters are uniform over a box of learnable ranges."""

from collections.abc import Iterable, Mapping
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitune.errors import InputError, unknown_name
from orbitune.orbits.base import Orbit
from orbitune.random import uniform

Parameterisation = Literal["direct", "reciprocal"]


class UniformOrbit(Orbit):
    """Transforms with parameters ν = low + (high − low)·ε, ε ~ U(0, 1)^P, and φ = (low, high) learnable.

    A subclass names its parameters (``names``, ``units``) and says what they do (``transform``); zeros should be
    the identity. ε is stratified per input (Latin hypercube): each of the S points is uniform, together they cover
    the box evenly, which lowers the variance of orbit averages at no cost.

    Args:
        ranges: (low, high) per name. Names left out start at (−start, start) if they are learned, else at zero.
        learn: the names whose range is learned; by default all of them.
        symmetric: tie low = −high, one number per parameter.
        parameterisation: the optimiser's coordinates are the bounds themselves ("direct") or ξ = 1/bound
            ("reciprocal", paper Fig. 4). The orbit is the same; only the path to it differs.
        start: half-width of the ranges that are learned and not given.
    """

    learned_index: Tensor
    fixed_low: Tensor
    fixed_high: Tensor

    def __init__(
        self,
        ranges: Mapping[str, tuple[float, float]] | None = None,
        *,
        learn: Iterable[str] | None = None,
        symmetric: bool = False,
        parameterisation: Parameterisation = "direct",
        start: float = 0.05,
    ):
        super().__init__()
        ranges = dict(ranges or {})
        learned = self.names if learn is None else (learn,) if isinstance(learn, str) else tuple(learn)
        for name in [*ranges, *learned]:
            if name not in self.names:
                raise unknown_name(f"parameter of {type(self).__name__}", name, self.names)
        if parameterisation not in ("direct", "reciprocal"):
            raise unknown_name("parameterisation", parameterisation, ("direct", "reciprocal"))
        bounds = [ranges.get(name, (-start, start) if name in learned else (0.0, 0.0)) for name in self.names]
        for name, (low, high) in zip(self.names, bounds, strict=True):
            _check_bounds(name, low, high, name in learned, symmetric, parameterisation)

        self.symmetric, self.parameterisation = symmetric, parameterisation
        low, high = (torch.tensor([pair[side] for pair in bounds], dtype=torch.get_default_dtype()) for side in (0, 1))
        index = torch.tensor([i for i, name in enumerate(self.names) if name in learned], dtype=torch.long)
        self.register_buffer("learned_index", index)
        self.register_buffer("fixed_low", low)
        self.register_buffer("fixed_high", high)
        self.raw_high = nn.Parameter(self._reparameterise(high[index]))
        self.raw_low = None if symmetric else nn.Parameter(self._reparameterise(low[index]))

    def _reparameterise(self, value: Tensor) -> Tensor:
        """Bound ↔ optimiser's coordinate: x ↦ x and x ↦ 1/x are their own inverses, so one function goes both ways."""
        return value.clone() if self.parameterisation == "direct" else 1 / value

    @property
    def high(self) -> Float[Tensor, " P"]:
        """φ_max, with gradient in the learned entries."""
        if not len(self.learned_index):
            return self.fixed_high
        return self.fixed_high.index_copy(0, self.learned_index, self._reparameterise(self.raw_high))

    @property
    def low(self) -> Float[Tensor, " P"]:
        """φ_min, with gradient in the learned entries."""
        if not len(self.learned_index):
            return self.fixed_low
        learned = -self._reparameterise(self.raw_high) if self.raw_low is None else self._reparameterise(self.raw_low)
        return self.fixed_low.index_copy(0, self.learned_index, learned)

    def sample_params(self, batch: int, size: int, generator: torch.Generator | None) -> Float[Tensor, "B S P"]:
        """ν = low + (high − low)·ε with ε stratified over the S points of each input."""
        low, high = self.low, self.high
        eps = stratified_uniform(batch, size, len(self.names), generator, low)
        return low + (high - low) * eps

    def ranges(self) -> dict[str, tuple[float, float]]:
        """The current range of each parameter, smaller bound first."""
        pairs = zip(self.low.tolist(), self.high.tolist(), strict=True)
        return {name: (min(pair), max(pair)) for name, pair in zip(self.names, pairs, strict=True)}


def stratified_uniform(
    batch: int, size: int, dims: int, generator: torch.Generator | None, like: Tensor
) -> Float[Tensor, "B S P"]:
    """Latin hypercube in (0, 1)^P: in each dimension every one of the S strata holds exactly one of the S points."""
    shape = (batch, size, dims)
    within = uniform(shape, generator, like)
    stratum = uniform(shape, generator, like).argsort(dim=1)
    return (stratum + within) / size


def _check_bounds(name: str, low: float, high: float, learned: bool, symmetric: bool, parameterisation: str) -> None:
    if not (-float("inf") < low <= high < float("inf")):
        raise InputError(f"range of {name!r}: expected finite low ≤ high, got low={low}, high={high}")
    if learned and symmetric and low != -high:
        raise InputError(f"range of {name!r} is tied symmetric, so low must be −high; got low={low}, high={high}")
    if learned and parameterisation == "reciprocal" and 0.0 in (low, high):
        raise InputError(
            f"range of {name!r}: the reciprocal parameterisation cannot represent the bound 0; "
            f"got low={low}, high={high}. Start at a small non-zero range such as (-0.05, 0.05)"
        )
