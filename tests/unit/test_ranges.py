"""Coordinates of the ranges: the same orbit in all of them."""

import math

import pytest
import torch

from orbitune.errors import InputError
from orbitune.orbits import AffineOrbit
from orbitune.orbits.ranges import KINDS

RANGES = {"rotation": (-0.5, 2.0), "log_scale_x": (-0.2, 0.1), "shear_y": (-0.3, 0.3)}


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_reparameterising_keeps_the_orbit(source, target):
    orbit = AffineOrbit(RANGES, learn=RANGES, parameterisation=source)
    other = orbit.reparameterised(target)
    assert type(other.learned) is KINDS[target]
    for name, bounds in orbit.ranges().items():
        assert other.ranges()[name] == pytest.approx(bounds, abs=1e-6)
    assert other.padding == orbit.padding and other is not orbit


def test_log_coordinates_are_half_width_and_relative_centre():
    orbit = AffineOrbit({"rotation": (-0.5, 2.0)}, learn="rotation", parameterisation="log")
    assert orbit.learned.raw_width.item() == pytest.approx(math.log(1.25))
    assert orbit.learned.raw_centre.item() == pytest.approx(0.75 / 1.25)


def test_symmetric_log_ranges_have_no_centre():
    orbit = AffineOrbit(learn="rotation", symmetric=True, parameterisation="log")
    assert [name for name, _ in orbit.named_parameters()] == ["learned.raw_width"]
    assert orbit.ranges()["rotation"] == pytest.approx((-0.05, 0.05))


@pytest.mark.parametrize("kind", KINDS)
def test_clamping_ends_at_a_full_turn(kind):
    orbit = AffineOrbit({"rotation": (-5.0, 1.0)}, learn="rotation", parameterisation=kind)
    orbit.clamp_()
    low, high = orbit.ranges()["rotation"]
    assert low >= -math.pi - 1e-5 and high <= math.pi + 1e-5


def test_log_ranges_always_hold_the_identity_and_never_vanish():
    orbit = AffineOrbit(parameterisation="log")
    with torch.no_grad():
        orbit.learned.raw_width.fill_(-20.0)
        orbit.learned.raw_centre.fill_(3.0)
    orbit.clamp_()
    for low, high in orbit.ranges().values():
        assert low <= 1e-6 and high >= 0.005


@pytest.mark.parametrize("bounds", [(0.5, 1.0), (-1.0, -0.5)])
def test_log_ranges_refuse_what_does_not_hold_the_identity(bounds):
    orbit = AffineOrbit({"log_scale_x": bounds}, learn="log_scale_x")
    with pytest.raises(InputError, match="must contain 0"):
        orbit.reparameterised("log")


def test_set_ranges_overwrites_the_named_ones_only():
    orbit = AffineOrbit(RANGES, learn=RANGES)
    orbit.set_ranges({"rotation": (-1.0, 1.5)})
    assert orbit.ranges()["rotation"] == pytest.approx((-1.0, 1.5))
    assert orbit.ranges()["log_scale_x"] == pytest.approx((-0.2, 0.1))
