"""The gradient in a range, from the boundary or along the points: both unbiased, against dense quadrature."""

import pytest
import torch

from builders import random_head, shallow_model
from montecarlo import assert_unbiased
from orbitune.likelihoods import Gaussian
from orbitune.objectives import sample_elbo, unbiased_elbo
from orbitune.orbits import UniformOrbit
from orbitune.orbits.base import Draw


class Shift(UniformOrbit):
    """x_a = x + ν."""

    names = ("x", "y")
    units = ("", "")

    def transform(self, inputs, params):
        return inputs.unsqueeze(1) + params


class SteppedShift(Shift):
    """The same in its values, but without a derivative in ν: only the boundary can tell."""

    def transform(self, inputs, params):
        return inputs.unsqueeze(1) + params.detach()


class Grid(Shift):
    """All of the range, on a fine grid of midpoints, for the reference."""

    boundary_width = float("inf")

    def sample_params(self, batch, size, generator):
        side = round(size**0.5)
        t = (torch.arange(side, dtype=torch.float64) + 0.5) / side
        eps = torch.cartesian_prod(t, t)  # (S, 2)
        return (self.low + (self.high - self.low) * eps).expand(batch, -1, -1)


RANGES = {"x": (-0.4, 1.1), "y": (-0.2, 0.3)}


def gradients(model, inputs, targets, bound, size, generator, **options):
    terms = bound(model, inputs, targets, num_data=4, orbit_size=size, generator=generator, **options)
    return torch.cat([g.flatten() for g in torch.autograd.grad(terms.elbo, list(model.orbit.parameters()))])


@pytest.fixture
def data(generator):
    return (torch.randn(4, d, generator=generator, dtype=torch.float64) for d in (2, 3))


@pytest.mark.parametrize("boundary_width", [0.0, 0.8, float("inf")])
@pytest.mark.parametrize("parameterisation", ["direct", "log"])
def test_gradient_of_the_unbiased_elbo_in_the_bounds(generator, data, boundary_width, parameterisation):
    inputs, targets = data
    head = random_head(generator)
    options = {"ranges": RANGES, "parameterisation": parameterisation}
    reference = shallow_model(Grid(**options).double(), Gaussian(3, 0.3), head)
    # A fine grid is the infinite orbit: there the two bounds coincide.
    truth = gradients(reference, inputs, targets, sample_elbo, 1600, None)
    model = shallow_model(Shift(**options).double(), Gaussian(3, 0.3), head)
    model.orbit.boundary_width = boundary_width
    copies = [values.repeat(60, 1) for values in (inputs, targets)]
    estimates = torch.stack([gradients(model, *copies, unbiased_elbo, 8, generator) for _ in range(30)])
    assert_unbiased(estimates, truth)


@pytest.mark.parametrize(
    ("orbit", "bound", "size"),
    [(SteppedShift, unbiased_elbo, 8), (Shift, sample_elbo, 1), (Shift, sample_elbo, 2), (Shift, sample_elbo, 8)],
)
def test_the_boundary_gives_the_gradient_of_the_infinite_orbit(generator, data, orbit, bound, size):
    """Also without a derivative of the transformation, and for the sample bound, which is quadratic in the average
    here: a reference point that is part of that average would bias the gradient."""
    inputs, targets = data
    head = random_head(generator)
    reference = shallow_model(Grid(RANGES).double(), Gaussian(3, 0.3), head)
    truth = gradients(reference, inputs, targets, sample_elbo, 1600, None)
    model = shallow_model(orbit(RANGES).double(), Gaussian(3, 0.3), head)
    model.orbit.boundary_width = 0.0
    copies = [values.repeat(60, 1) for values in (inputs, targets)]
    estimates = torch.stack([gradients(model, *copies, bound, size, generator) for _ in range(30)])
    assert_unbiased(estimates, truth)


def test_what_a_narrow_range_does_is_no_noise_in_the_gradient_of_a_wide_one(generator):
    orbit = Shift(RANGES)  # only x is wide
    params, weights = orbit.draw(20, 4, generator)
    of_y = (1000 * params[..., 1].detach()) @ weights  # (B,)
    for value in of_y:
        gradients = torch.autograd.grad(value, list(orbit.parameters()), retain_graph=True)
        assert all(gradient.abs().max() < 1e-3 for gradient in gradients)


@pytest.mark.parametrize("pathwise", [False, True])
def test_the_boundary_changes_no_value(generator, data, monkeypatch, pathwise):
    inputs, targets = data
    model = shallow_model(Shift(RANGES).double(), Gaussian(3, 0.3), random_head(generator))
    drawn = model.orbit.draw(4, 5, generator)
    values = []
    for replayed in (drawn, Draw(drawn.params[:, :5], None)):
        monkeypatch.setattr(model.orbit, "draw", lambda *_, replayed=replayed, **__: replayed)
        fixed = torch.Generator().manual_seed(4)
        terms = sample_elbo(model, inputs, targets, num_data=4, orbit_size=5, pathwise=pathwise, generator=fixed)
        values.append(terms.elbo)
    torch.testing.assert_close(values[0], values[1])


def test_without_gradients_there_are_no_boundary_points(generator):
    orbit = Shift(RANGES)
    with torch.no_grad():
        params, weights = orbit.draw(3, 4, generator)
    assert params.shape == (3, 4, 2) and weights is None
    params, weights = orbit.draw(3, 4, generator)
    assert params.shape == (3, 8, 2)  # only x is wide
    torch.testing.assert_close(weights, torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0]))
    params, weights = orbit.draw(3, 4, generator, linear=True)
    assert params.shape == (3, 6, 2)  # the points are their own reference
    torch.testing.assert_close(weights, torch.tensor([0.25, 0.25, 0.25, 0.25, 0.0, 0.0]))


def test_a_single_precision_orbit_under_a_double_precision_head(generator, data):
    inputs, targets = data
    model = shallow_model(Shift(RANGES), Gaussian(3, 0.3), random_head(generator))
    terms = unbiased_elbo(model, inputs, targets, num_data=4, orbit_size=4, generator=generator)
    terms.elbo.backward()
    assert all(p.grad.abs().min() > 0 for p in model.orbit.parameters())
