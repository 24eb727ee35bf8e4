"""Finite orbits: nothing at all, and the sign of a real input."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.orbits.base import FiniteOrbit


class IdentityOrbit(FiniteOrbit):
    """The orbit {x}: with it, every model here is its ordinary, non-invariant self."""

    names: ClassVar[tuple[str, ...]] = ()
    units: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        super().__init__(torch.zeros(1, 0))

    def transform(
        self, inputs: Float[Tensor, "B *event"], params: Float[Tensor, "B 1 0"]
    ) -> Float[Tensor, "B 1 *event"]:
        """The input itself, as an orbit of one point."""
        return inputs.unsqueeze(1)


class SignFlip(FiniteOrbit):
    """The orbit {x, −x}: functions that are even in their input (paper, Fig. 1)."""

    names: ClassVar[tuple[str, ...]] = ("sign",)
    units: ClassVar[tuple[str, ...]] = ("",)

    def __init__(self) -> None:
        super().__init__(torch.tensor([[1.0], [-1.0]]))

    def transform(
        self, inputs: Float[Tensor, "B *event"], params: Float[Tensor, "B S 1"]
    ) -> Float[Tensor, "B S *event"]:
        """x_a = ν x with ν ∈ {1, −1}."""
        batch, size, _ = params.shape
        sign = params.reshape(batch, size, *(1 for _ in inputs.shape[1:]))
        return inputs.unsqueeze(1) * sign.to(inputs.dtype)
