"""Networks train a little ahead of the current ranges."""

import math

import torch

from orbitune.learners.look_ahead import LookAhead
from orbitune.orbits import AffineOrbit

RANGES = {"rotation": (-3.0, 2.0), "translate_x": (-0.4, 0.05), "shear_x": (-0.5, 0.5)}


def test_one_learned_parameter_per_draw_goes_beyond_and_none_beyond_its_wider_range(generator):
    orbit = AffineOrbit(RANGES, learn=("rotation", "translate_x"))
    params = LookAhead(orbit, factor=1.5, floor=0.3).sample_params(2000, 2, generator)
    low, high = orbit.low.detach(), orbit.high.detach()
    beyond = (params < low) | (params > high)
    assert beyond.sum(-1).max() == 1
    assert beyond[..., 0].any() and beyond[..., 5].any() and not beyond[..., 3].any()
    assert params[..., 0].abs().max() <= math.pi + 1e-6  # 1.5 · 3 is cut at a full turn
    assert -0.6 <= params[..., 5].min() < -0.5 and 0.25 < params[..., 5].max() <= 0.3
    assert params[..., 3].abs().max() <= 0.5


def test_an_orbit_with_nothing_to_learn_is_left_alone(generator):
    orbit = AffineOrbit(RANGES, learn=())
    ahead = LookAhead(orbit, 1.5, 0.3)
    state = generator.get_state()
    params = ahead.sample_params(5, 2, generator)
    generator.set_state(state)
    assert torch.equal(params, orbit.sample_params(5, 2, generator))


def test_it_follows_the_orbit(generator):
    orbit = AffineOrbit(learn="rotation")
    ahead = LookAhead(orbit, 1.5, 0.1)
    orbit.set_ranges({"rotation": (-2.0, 2.0)})
    assert ahead.sample_params(500, 1, generator)[..., 0].abs().max() > 2.5
    assert ahead.ranges() == orbit.ranges() and ahead.names == orbit.names
