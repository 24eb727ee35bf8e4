"""The two kinds of orbit: one that is sampled, and one small enough to be listed."""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitune.errors import InputError


class Draw(NamedTuple):
    """Transform parameters (B, S, P) and weights (S,) that sum to one, or None for 1/S each."""

    params: Tensor
    weights: Tensor | None


class Orbit(nn.Module, ABC):
    """A distribution p(x_a | x, φ) over transformed copies of an input.

    Sampling of parameters ν and their application to inputs are two methods, so that the same ν can be replayed,
    plotted or exported. Both are differentiable in the learnable φ, which are ordinary parameters of the module.
    """

    names: ClassVar[tuple[str, ...]]
    """One name per transform parameter: P of them."""
    units: ClassVar[tuple[str, ...]]
    """The unit of each parameter, for people."""
    exact: ClassVar[bool] = False
    """Whether ``sample_params`` returns the whole orbit, so that the mean over it is the expectation itself."""

    @abstractmethod
    def sample_params(self, batch: int, size: int, generator: torch.Generator | None) -> Float[Tensor, "B S P"]:
        """Draw ν ~ p(ν | φ): S parameter vectors for each of B inputs.

        Each vector has the law p(ν | φ) by itself; those of one input may depend on each other (stratification),
        those of two calls are independent.
        """

    def draw(self, batch: int, size: int, generator: torch.Generator | None, *, linear: bool = False) -> "Draw":
        """Points to average over, for a bound that is differentiated in φ: by default a plain sample.

        ``linear`` says that the bound is linear in the average over these points.
        """
        return Draw(self.sample_params(batch, size, generator), None)

    @abstractmethod
    def transform(
        self, inputs: Float[Tensor, "B *event"], params: Float[Tensor, "B S P"]
    ) -> Float[Tensor, "B S *event"]:
        """Apply x_a = t_ν(x): every input with each of its S parameter vectors."""

    @abstractmethod
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The current (low, high) of each parameter, for people."""

    def clamp_(self) -> None:
        """Bring learned parameters back to where they mean something; called after every optimiser step."""

    def forward(
        self, inputs: Float[Tensor, "B *event"], size: int, generator: torch.Generator | None = None
    ) -> Float[Tensor, "B S *event"]:
        """Draw S points of the orbit of each input."""
        return self.transform(inputs, self.sample_params(inputs.shape[0], size, generator))

    def extra_repr(self) -> str:
        """Ranges, as ``print(model)`` shows them."""
        return ", ".join(f"{name}=[{low:.3g}, {high:.3g}]" for name, (low, high) in self.ranges().items())


class FiniteOrbit(Orbit):
    """An orbit of G transformations, all of which are used every time: its average is exact, ``size`` is ignored."""

    exact: ClassVar[bool] = True
    elements: Tensor

    def __init__(self, elements: Float[Tensor, "G P"]):
        super().__init__()
        if elements.shape[0] < 1 or elements.shape[1] != len(self.names):
            raise InputError(
                f"{type(self).__name__}: elements must have shape (G ≥ 1, P = {len(self.names)}), "
                f"got {tuple(elements.shape)}"
            )
        self.register_buffer("elements", elements.clone())

    def sample_params(self, batch: int, size: int, generator: torch.Generator | None) -> Float[Tensor, "B G P"]:
        """All G elements, for each of B inputs."""
        return self.elements.expand(batch, -1, -1)

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Smallest and largest value of each parameter over the group."""
        low, high = self.elements.amin(0).tolist(), self.elements.amax(0).tolist()
        return dict(zip(self.names, zip(low, high, strict=True), strict=True))
