"""Where inducing inputs go."""

import logging

import pytest
import torch

from builders import rbf_kernel
from orbitune.gp import default_kernel, median_distance, select_inducing
from orbitune.gp.orbit_kernel import evaluate


@pytest.fixture
def features(generator):
    return torch.randn(60, 3, generator=generator, dtype=torch.float64)


def residual(features, Z, kernel):
    """Variance of g at the features that Z leaves unexplained, by brute force."""
    Kuu = evaluate(kernel, Z, Z) + 1e-10 * torch.eye(len(Z), dtype=Z.dtype)
    Kuf = evaluate(kernel, Z, features)
    return 1.3 - (Kuf * torch.linalg.solve(Kuu, Kuf)).sum(0)


@pytest.mark.parametrize("method", ["greedy", "kmeans", "random"])
def test_every_method_returns_m_distinct_inputs_and_obeys_its_generator(features, method):
    first, again = (
        select_inducing(features, 10, rbf_kernel(), method, torch.Generator().manual_seed(1)) for _ in range(2)
    )
    assert first.shape == (10, 3) and first.dtype == torch.float64
    assert torch.pdist(first).min() > 0
    torch.testing.assert_close(first, again)


def test_greedy_takes_the_point_of_largest_conditional_variance_each_time(features):
    kernel = rbf_kernel()
    Z = select_inducing(features, 8, kernel, "greedy")
    for j in range(1, 8):
        variance = residual(features, Z[:j], kernel).detach()
        chosen = (features == Z[j]).all(1)
        assert variance[chosen] == pytest.approx(variance.max().item(), rel=1e-6)


def test_greedy_explains_more_than_random(features, generator):
    kernel = rbf_kernel(lengthscale=2.0)
    greedy = residual(features, select_inducing(features, 15, kernel, "greedy"), kernel).max()
    random = residual(features, select_inducing(features, 15, kernel, "random", generator), kernel).max()
    assert greedy < random


def test_greedy_stops_when_nothing_is_left_to_explain(generator, caplog):
    four_points = torch.randn(4, 3, generator=generator, dtype=torch.float64).repeat(10, 1)
    with caplog.at_level(logging.WARNING, logger="orbitune"):
        Z = select_inducing(four_points, 20, rbf_kernel(), "greedy")
    assert len(Z) == 4
    assert "4 of 20" in caplog.text


def test_all_data_as_inducing_inputs_explains_everything(features):
    kernel = rbf_kernel()
    Z = select_inducing(features, 60, kernel, "greedy")
    assert residual(features, Z, kernel).abs().max() < 1e-6


def test_median_distance_scales_with_the_features_and_survives_identical_ones(features):
    assert median_distance(5 * features) == pytest.approx(5 * median_distance(features))
    assert median_distance(torch.ones(5, 2)) == 1.0


def test_default_kernel_starts_at_the_median_distance(features):
    for ard in (False, True):
        kernel = default_kernel(features, ard=ard)
        assert kernel.base_kernel.lengthscale.shape == (1, 3 if ard else 1)
        torch.testing.assert_close(
            kernel.base_kernel.lengthscale.detach(),
            torch.full((1, 3 if ard else 1), median_distance(features), dtype=torch.float64),
        )
        assert kernel.outputscale.item() == pytest.approx(1.0)
