"""Every public orbit, likelihood and backbone keeps the contract of its kind; see ``contracts``."""

import pytest
import torch

from contracts import (
    BACKBONES,
    LIKELIHOODS,
    ORBITS,
    checks_of,
    on_dense_grid,
    public_backbones,
    public_likelihoods,
    public_orbits,
)
from orbitune.gp import OrbitMarginal
from orbitune.likelihoods import Poisson

KINDS = ["orbits", "likelihoods", "backbones"]


def each_example(examples_by_class):
    """One test case per example, called Class-label."""
    return [
        pytest.param(example, id=f"{cls.__name__}-{label}")
        for cls, examples in examples_by_class.items()
        for label, example in examples.items()
    ]


def each_check(kind):
    return [pytest.param(check, id=check.__name__.removeprefix(kind + "_")) for check in checks_of(kind)]


@pytest.mark.parametrize("check", each_check("module"))
@pytest.mark.parametrize("example", each_example(ORBITS | LIKELIHOODS | BACKBONES))
def test_module(example, check):
    check(example)


@pytest.mark.parametrize("check", each_check("orbit"))
@pytest.mark.parametrize("example", each_example(ORBITS))
def test_orbit(example, check):
    check(example)


@pytest.mark.parametrize("check", each_check("likelihood"))
@pytest.mark.parametrize("example", each_example(LIKELIHOODS))
def test_likelihood(example, check):
    check(example)


@pytest.mark.parametrize("check", each_check("backbone"))
@pytest.mark.parametrize("example", each_example(BACKBONES))
def test_backbone(example, check):
    check(example)


@pytest.mark.parametrize(
    ("public", "examples_by_class"),
    [(public_orbits, ORBITS), (public_likelihoods, LIKELIHOODS), (public_backbones, BACKBONES)],
    ids=KINDS,
)
def test_a_public_class_without_an_example_in_contracts_fails_the_suite(public, examples_by_class):
    assert sorted(cls.__name__ for cls in public()) == sorted(cls.__name__ for cls in examples_by_class)


@pytest.mark.parametrize("examples_by_class", [ORBITS, LIKELIHOODS, BACKBONES], ids=KINDS)
def test_every_example_is_of_the_class_it_stands_for(examples_by_class):
    for cls, examples in examples_by_class.items():
        assert {type(example.make()) for example in examples.values()} == {cls}


@pytest.mark.parametrize("count", [7.0, 20.0, 50.0, 200.0])
def test_poisson_predictive_of_a_surprising_count_is_that_of_dense_quadrature(count):
    likelihood, targets = Poisson().double(), torch.tensor([[count]], dtype=torch.float64)
    zero, one = torch.zeros(1, 1, dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64)
    law = OrbitMarginal(zero, one, whitened=zero)
    log_prob_each, weights = on_dense_grid(likelihood, law, targets)  # (G, 1, 1), (G,)
    expected = (weights @ log_prob_each[:, 0].exp()).log()
    # A thousandth of a nat: less would not show in any table.
    torch.testing.assert_close(likelihood.log_predictive(law, targets, 1), expected, rtol=0, atol=1e-3)
