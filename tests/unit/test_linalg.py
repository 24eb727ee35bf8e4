"""One jitter policy, never silent."""

import logging

import pytest
import torch

from orbitune.errors import NumericalError
from orbitune.gp import JitterPolicy, cholesky


def singular(dtype=torch.float64):
    """Rank one, scale 7."""
    return 7 * torch.ones(4, 4, dtype=dtype)


def test_factor_reproduces_the_matrix_with_the_jitter_it_reports(generator):
    K = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    K = K @ K.mT
    L, jitter = cholesky(K)
    torch.testing.assert_close(L @ L.mT, K + jitter * torch.eye(5, dtype=torch.float64))
    torch.testing.assert_close(jitter, 1e-6 * K.diagonal().mean())


def test_jitter_is_relative_to_the_scale_of_the_matrix():
    assert cholesky(1e6 * singular()).jitter == pytest.approx(1e6 * cholesky(singular()).jitter)


def test_single_precision_starts_higher():
    assert cholesky(singular(torch.float32)).jitter == pytest.approx(7e-4)


def test_escalation_is_logged_and_stops_at_the_first_jitter_that_works(caplog):
    K = singular() - 3e-5 * torch.eye(4, dtype=torch.float64)
    with caplog.at_level(logging.WARNING, logger="orbitune"):
        L, jitter = cholesky(K, JitterPolicy(start=1e-7), name="Kuu")
    assert jitter == pytest.approx(7e-5, rel=1e-3)
    assert len(caplog.records) == 2 and "Kuu" in caplog.text
    assert L.isfinite().all()


def test_no_warning_when_the_first_jitter_works(caplog):
    cholesky(singular())
    assert not caplog.records


def test_a_hopeless_matrix_gets_an_error_with_causes():
    with pytest.raises(NumericalError, match=r"Kuu \(4×4\) is not positive definite .* causes"):
        cholesky(-torch.eye(4, dtype=torch.float64), name="Kuu")


def test_batches_share_one_jitter(generator):
    K = torch.stack((singular(), torch.eye(4, dtype=torch.float64)))
    L, jitter = cholesky(K)
    torch.testing.assert_close(L @ L.mT, K + jitter * torch.eye(4, dtype=torch.float64))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", [(0, 0), (3, 3), (2, 1)])
def test_entries_that_are_not_finite_are_named_wherever_they_are(place, value):
    K = torch.eye(4, dtype=torch.float64)
    K[place] = K[place[::-1]] = value
    with pytest.raises(NumericalError, match=r"Kuu \(4×4\) contains NaN or infinite entries"):
        cholesky(K, name="Kuu")
