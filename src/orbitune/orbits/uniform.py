"""Orbits whose parameters are uniform over a box of learnable ranges."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.errors import InputError, unknown_name
from orbitune.orbits.base import Draw, Orbit
from orbitune.orbits.ranges import KINDS, Parameterisation
from orbitune.random import uniform


class UniformOrbit(Orbit):
    """Transforms with parameters ν = low + (high − low)·ε, ε ~ U(0, 1)^P, and φ = (low, high) learnable.

    A subclass names its parameters (``names``, ``units``) and says what they do (``transform``); zeros should be
    the identity. ε is stratified per input (Latin hypercube): each of the S points is uniform, together they cover
    the box evenly, which lowers the variance of orbit averages at no cost.

    Args:
        ranges: (low, high) per name. Names left out start at (−start, start) if they are learned, else at zero.
        learn: the names whose range is learned; by default all of them.
        symmetric: tie low = −high, one number per parameter.
        parameterisation: the optimiser's coordinates: the bounds themselves ("direct"), ξ = 1/bound ("reciprocal",
            paper Fig. 4), or the logarithm of the half-width ("log"). The orbit is the same; only the path differs.
        start: half-width of the ranges that are learned and not given.
    """

    limits: ClassVar[Mapping[str, float]] = {}
    """Largest sensible absolute bound, for parameters that have one."""

    scales: ClassVar[Mapping[str, float]] = {}
    """What a large change of a parameter is, where that is not 1."""

    boundary_width: float = 0.8
    """Ranges wider than this get their gradient from their boundary; see :meth:`draw`."""

    learned_index: Tensor
    limit: Tensor
    scale: Tensor
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
        if parameterisation not in KINDS:
            raise unknown_name("parameterisation", parameterisation, KINDS)
        bounds = [ranges.get(name, (-start, start) if name in learned else (0.0, 0.0)) for name in self.names]
        for name, pair in zip(self.names, bounds, strict=True):
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise InputError(f"range of {name!r}: expected a pair (low, high), got {pair!r}")
            low, high = pair
            _check_bounds(name, low, high, tied=symmetric and name in learned)

        low, high = (torch.tensor([pair[side] for pair in bounds], dtype=torch.get_default_dtype()) for side in (0, 1))
        index = torch.tensor([i for i, name in enumerate(self.names) if name in learned], dtype=torch.long)
        limits = torch.tensor([self.limits.get(name, torch.inf) for name in self.names])
        self.register_buffer("learned_index", index)
        self.register_buffer("fixed_low", low)
        self.register_buffer("fixed_high", high)
        self.register_buffer("limit", limits.to(low.dtype), persistent=False)
        scales = torch.tensor([self.scales.get(name, 1.0) for name in self.names])
        self.register_buffer("scale", scales.to(low.dtype), persistent=False)
        self.learned = KINDS[parameterisation](low[index], high[index], symmetric) if len(index) else None

    @property
    def low(self) -> Float[Tensor, " P"]:
        """φ_min, with gradient in the learned entries."""
        if self.learned is None:
            return self.fixed_low
        return self.fixed_low.index_copy(0, self.learned_index, self.learned.bounds()[0])

    @property
    def high(self) -> Float[Tensor, " P"]:
        """φ_max, with gradient in the learned entries."""
        if self.learned is None:
            return self.fixed_high
        return self.fixed_high.index_copy(0, self.learned_index, self.learned.bounds()[1])

    def clamp_(self) -> None:
        """Bring learned ranges back to where they mean something: within ``limits``."""
        if self.learned is not None:
            self.learned.clamp_(self.limit[self.learned_index])

    def reparameterised(self, parameterisation: Parameterisation) -> "UniformOrbit":
        """A copy with the same ranges in other coordinates; logarithmic ones have no range below ±0.01."""
        other = copy.deepcopy(self)
        if self.learned is not None:
            low, high = (bound.detach() for bound in self.learned.bounds())
            other.learned = KINDS[parameterisation](low, high, self.learned.symmetric)
        return other

    @torch.no_grad()
    def set_ranges(self, ranges: Mapping[str, tuple[float, float]]) -> None:
        """Overwrite the ranges of learned parameters; names left out keep theirs."""
        if self.learned is None:
            return
        low, high = self.low.clone(), self.high.clone()
        for name, bounds in ranges.items():
            low[self.names.index(name)], high[self.names.index(name)] = bounds
        self.learned.set_bounds(low[self.learned_index], high[self.learned_index])

    def sample_params(self, batch: int, size: int, generator: torch.Generator | None) -> Float[Tensor, "B S P"]:
        """ν = low + (high − low)·ε with ε stratified over the S points of each input."""
        low, high = self.low, self.high
        eps = stratified_uniform(batch, size, len(self.names), generator, low)
        return low + (high - low) * eps

    def draw(self, batch: int, size: int, generator: torch.Generator | None, *, linear: bool = False) -> Draw:
        """A sample, with the gradient in wide ranges moved from the points to their weights.

        For ν_p uniform on (low, high) any expectation obeys

            ∂E[t]/∂high = (E[t | ν_p = high] − E[t]) / (high − low),
            ∂E[t]/∂low  = (E[t] − E[t | ν_p = low]) / (high − low).

        A wide range moves its points far, so the gradient along them is noisy; the two values at its boundary are not.
        For every learned range wider than ``boundary_width`` two points on its boundary are added, and for all of them
        together two points in the box for E[t], with weights that are zero but have this derivative. Those must be
        fresh ones: were E[t] the mean of the S points themselves, a concave function of that mean would reward every
        new point, at the boundary or not. A ``linear`` one does not, and none are added. The transformation need not be
        differentiable in such a parameter.
        """
        params = self.sample_params(batch, size, generator)
        low, high = self.low, self.high
        wide = self.learned_index[(high - low).detach()[self.learned_index] > self.boundary_width].tolist()
        if not wide or not (low.requires_grad and torch.is_grad_enabled()):
            return Draw(params, None)
        bulk = torch.cat([p.detach() if i in wide else p for i, p in enumerate(params.split(1, dim=-1))], dim=-1)
        inside = self.sample_params(batch, 2, generator).detach()  # one for each bound: two halve their variance
        narrow = [p for p in range(len(self.names)) if p not in wide]
        inside[:, 1, narrow] = inside[:, 0, narrow]  # equal in all four points, and so is what they do: it cancels
        boundary, weights = [], []
        for p in wide:
            for point, bound, sign in zip(inside.split(1, dim=1), (high[p], low[p]), (1, -1), strict=True):
                face = point.clone()
                face[..., p] = bound.detach()
                boundary.append(face)
                weights.append(sign * (bound - bound.detach()) / (high[p] - low[p]).detach())
        zero = torch.stack(weights)
        equal = torch.full_like(low, 1 / size)[:1].expand(size)
        if linear:
            return Draw(torch.cat((bulk, *boundary), dim=1), torch.cat((equal - zero.sum() / size, zero)))
        reference = -zero.sum().expand(2) / 2
        return Draw(torch.cat((bulk, inside, *boundary), dim=1), torch.cat((equal, reference, zero)))

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


def _check_bounds(name: str, low: float, high: float, tied: bool) -> None:
    if not (-float("inf") < low <= high < float("inf")):
        raise InputError(f"range of {name!r}: expected finite low ≤ high, got low={low}, high={high}")
    if tied and low != -high:
        raise InputError(f"range of {name!r} is tied symmetric, so low must be −high; got low={low}, high={high}")
