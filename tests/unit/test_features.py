"""From inputs to features: pieces and partial back-propagation change cost, not expectations."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

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


class Count(TorchDispatchMode):
    """How often an operation is computed."""

    def __init__(self, operation):
        super().__init__()
        self.operation, self.count = operation, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is self.operation
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("max_product_points", "num_repeated"), [(0, 3), (10, 1), (100, 0)])
def test_pieces_that_are_computed_twice_give_the_same_gradients(case, monkeypatch, max_product_points, num_repeated):
    """Three points of five inputs: as many as allowed keep their products, the others compute them again."""
    values, expected = gradients(case)
    monkeypatch.setattr(features, "MAX_POINTS", 7)
    monkeypatch.setattr(features, "MAX_RECOMPUTED_POINTS", 7)  # one point of five inputs at a time
    monkeypatch.setattr(features, "MAX_PRODUCT_POINTS", max_product_points)
    monkeypatch.setattr(features, "COSTLY", 2)
    with Count(torch.ops.aten.convolution.default) as convolutions:
        in_pieces, found = gradients(case)
    assert convolutions.count == 3 + num_repeated
    torch.testing.assert_close(in_pieces, values)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("costly", "num_computed"), [(18, 1), (19, 2)])
def test_the_cost_of_a_convolution_is_the_size_of_a_filter(monkeypatch, costly, num_computed):
    for limit, value in (("MAX_POINTS", 1), ("MAX_PRODUCT_POINTS", 100), ("COSTLY", costly)):
        monkeypatch.setattr(features, limit, value)
    orbit, images = AffineOrbit(learn=()), torch.rand(2, 2, 6, 6)
    backbone = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten())  # 2·3·3 multiplications per entry
    with Count(torch.ops.aten.convolution.default) as convolutions:
        features_of_points(orbit, backbone, images, torch.zeros(2, 1, 7)).square().sum().backward()
    assert convolutions.count == num_computed


def test_forward_pieces_give_the_same_features(case, monkeypatch):
    orbit, backbone, inputs, params = case
    with torch.no_grad():
        whole = features_of_points(orbit, backbone, inputs, params())
        monkeypatch.setattr(features, "MAX_FORWARD_POINTS", 10)
        calls = []
        backbone.register_forward_hook(lambda *_: calls.append(1))
        torch.testing.assert_close(features_of_points(orbit, backbone, inputs, params()), whole)
    assert len(calls) == 2


def test_at_least_one_point_must_be_back_propagated_through(case):
    with pytest.raises(InputError, match="at least 1, got 0"):
        gradients(case, backward_points=0)
