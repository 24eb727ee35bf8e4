"""Networks train a little ahead of the current ranges."""

import math

import torch

from orbitune.learners.look_ahead import LookAhead
from orbitune.orbits import AffineOrbit

RANGES = {"rotation": (-3.0, 2.0), "translate_x": (-0.4, 0.05), "shear_x": (-0.5, 0.5)}
RANGES_ORDER = ("rotation", "shear_x", "translate_x", "translate_y")


def test_every_learned_range_grows_by_the_factor_and_one_per_draw_to_the_floor(generator):
    orbit = AffineOrbit(RANGES, learn=("rotation", "translate_x", "translate_y"))  # translate_y starts at ±0.05
    params = LookAhead(orbit, factor=1.5, floor=0.3).sample_params(4000, 2, generator)
    rotation, shear_x, translate_x, translate_y = (params[..., orbit.names.index(n)] for n in (*RANGES_ORDER,))
    assert 3 < rotation.abs().max() <= math.pi + 1e-6  # 1.5 · 3 is cut at a full turn
    assert shear_x.abs().max() <= 0.5  # not learned, not widened
    beyond_factor = torch.stack((translate_x > 1.5 * 0.05, translate_y.abs() > 1.5 * 0.05))
    assert beyond_factor.sum(0).max() == 1  # one at a time
    assert -0.6 <= translate_x.min() < -0.55 and 0.25 < translate_x.max() <= 0.3
    assert -0.3 <= translate_y.min() < -0.25 and 0.25 < translate_y.max() <= 0.3
    # Two draws of three have another parameter chosen; of the third, a quarter falls into the narrow range.
    assert abs((translate_y.abs() <= 0.075).float().mean() - (2 / 3 + 1 / 3 / 4)) < 0.03


def test_a_range_without_zero_is_widened_not_left_behind(generator):
    orbit = AffineOrbit({"rotation": (0.2, 0.4), "shear_x": (-0.5, -0.2)}, learn=("rotation", "shear_x"))
    params = LookAhead(orbit, factor=1.5, floor=0.0).sample_params(2000, 1, generator)
    rotation, shear_x = params[..., orbit.names.index("rotation")], params[..., orbit.names.index("shear_x")]
    assert 0.55 < rotation.max() <= 0.6 and -0.75 <= shear_x.min() < -0.7
    # Uniform on 0.2 … 0.6 or, if chosen, on 0 … 0.6: a quarter or a sixth of the draws is between 0.2 and 0.3.
    assert abs(((rotation > 0.2) & (rotation < 0.3)).float().mean() - (1 / 4 + 1 / 6) / 2) < 0.03


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
