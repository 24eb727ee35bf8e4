"""What may happen to an input without changing its label: the augmentation distribution p(x_a | x, φ)."""

from orbitune.orbits.affine import AffineOrbit
from orbitune.orbits.base import FiniteOrbit, Orbit
from orbitune.orbits.finite import IdentityOrbit, SignFlip
from orbitune.orbits.uniform import UniformOrbit

__all__ = ["AffineOrbit", "FiniteOrbit", "IdentityOrbit", "Orbit", "SignFlip", "UniformOrbit"]
