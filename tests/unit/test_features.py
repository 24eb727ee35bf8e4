"""From inputs to features: pieces and partial back-propagation change cost, not expectations."""

import pytest
import torch
from torch import nn

from orbitune import features
from orbitune.errors import InputError
from orbitune.features import features_of_points
from orbitune.orbits import AffineOrbit


@pytest.fixture
def case(generator):
    orbit = AffineOrbit({"rotation": (-0.5, 0.4)}).double()
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(3 * 36, 4)).double()
    inputs = torch.rand(5, 1, 8, 8, generator=generator, dtype=torch.float64)
    state = generator.get_state()

    def params():
        generator.set_state(state)
        return orbit.sample_params(5, 3, generator)

    return orbit, backbone, inputs, params


def gradients(case, **options):
    """Gradients of a function that is not linear in the features."""
    orbit, backbone, inputs, params = case
    orbit.zero_grad()
    backbone.zero_grad()
    H = features_of_points(orbit, backbone, inputs, params(), **options)
    H.mean(1).sin().sum().backward()
    return H.detach(), torch.cat([p.grad.flatten() for p in (*orbit.parameters(), *backbone.parameters())])


@pytest.mark.parametrize(("backward_points", "num_subsets"), [(1, 3), (2, 3)])
def test_partial_back_propagation_is_exact_on_average_over_all_subsets(case, backward_points, num_subsets):
    values, expected = gradients(case)
    found = {}
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        same_values, gradient = gradients(case, backward_points=backward_points, generator=generator)
        torch.testing.assert_close(same_values, values, rtol=0, atol=1e-14)
        found[tuple(gradient[:3].tolist())] = gradient
    distinct = torch.stack(list(found.values()))
    rounded = torch.unique(distinct.mul(1e9).round(), dim=0) / 1e9
    assert len(rounded) == num_subsets
    torch.testing.assert_close(rounded.mean(0), expected, rtol=1e-6, atol=1e-8)


def test_forward_pieces_give_the_same_features(case, monkeypatch):
    orbit, backbone, inputs, params = case
    with torch.no_grad():
        whole = features_of_points(orbit, backbone, inputs, params())
        monkeypatch.setattr(features, "MAX_PIECE_POINTS", 10)
        calls = []
        backbone.register_forward_hook(lambda *_: calls.append(1))
        torch.testing.assert_close(features_of_points(orbit, backbone, inputs, params()), whole)
    assert len(calls) == 2


def test_where_nothing_requires_gradients_the_pieces_are_those_of_a_forward_pass(case, monkeypatch):
    orbit, backbone, inputs, params = case
    monkeypatch.setattr(features, "MAX_PIECE_POINTS", 5)
    calls = []
    backbone.register_forward_hook(lambda *_: calls.append(1))
    orbit.requires_grad_(False)
    backbone.requires_grad_(False)
    assert not features_of_points(orbit, backbone, inputs, params()).requires_grad
    assert len(calls) == 3


@pytest.mark.parametrize("source", ["orbit", "backbone", "inputs"])
def test_gradients_reach_whatever_requires_them(case, source):
    orbit, backbone, inputs, params = case
    orbit.requires_grad_(source == "orbit")
    backbone.requires_grad_(source == "backbone")
    inputs.requires_grad_(source == "inputs")
    assert features_of_points(orbit, backbone, inputs, params()).requires_grad


def test_at_least_one_point_must_be_back_propagated_through(case):
    with pytest.raises(InputError, match="at least 1, got 0"):
        gradients(case, backward_points=0)
