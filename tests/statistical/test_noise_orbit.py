"""Gaussian-noise orbit and squared-exponential kernel: everything has a closed form, every estimator must agree."""

import math

import numpy as np
import pytest
import torch

import reference
from builders import NoiseOrbit, random_head, shallow_model
from montecarlo import assert_mean_below, assert_unbiased
from orbitune.gp.orbit_kernel import orbit_mean_kff, orbit_mean_Kuf
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.objectives import sample_elbo, unbiased_elbo

VARIANCE, LENGTHSCALE, STD, NOISE = 1.3, 0.8, 0.5, 0.3


@pytest.fixture
def inputs(generator):
    return torch.randn(4, 2, generator=generator, dtype=torch.float64)


@pytest.fixture
def targets(generator):
    return torch.randn(4, 3, generator=generator, dtype=torch.float64)


@pytest.fixture
def model(generator):
    return shallow_model(NoiseOrbit(STD), Gaussian(3, NOISE), random_head(generator))


def closed_form(model, inputs, targets, std=STD):
    """Kuf, kff, (μ, τ) per output and the ELBO of the infinite orbit, in numpy."""
    Z, X, Y = (t.detach().numpy() for t in (model.head.Z, inputs, targets))
    Kuu = reference.rbf(Z, Z, VARIANCE, LENGTHSCALE) + 1e-10 * VARIANCE * np.eye(len(Z))
    Kuf = reference.noise_orbit_Kuf(Z, X, VARIANCE, LENGTHSCALE, std)
    kff = reference.noise_orbit_kff(X, VARIANCE, LENGTHSCALE, std)
    A = np.linalg.solve(np.linalg.cholesky(Kuu), Kuf)  # (M, N)
    cov = np.linalg.inv(model.head.posterior.precision.numpy())  # (C, M, M)
    m = np.stack([S @ theta for S, theta in zip(cov, model.head.posterior.theta.numpy().T, strict=True)])  # (C, M)
    mu = (m @ A).T
    tau = np.stack([kff - (A * A).sum(0) + (A * (S @ A)).sum(0) for S in cov]).T
    log_det = [np.linalg.slogdet(S)[1] for S in cov]
    kl = 0.5 * sum(np.trace(S) + mc @ mc - len(Z) - ld for S, mc, ld in zip(cov, m, log_det, strict=True))
    data_fit = -0.5 * (np.log(2 * np.pi * NOISE) + ((Y - mu) ** 2 + tau) / NOISE).sum()
    return Kuf, kff, mu, tau, data_fit - kl


def replicate(values, times):
    """(N, …) → (times · N, …), so that one call gives independent estimates for many copies of each input."""
    return values.expand(times, *values.shape).flatten(0, 1)


def orbit(model, inputs, times, size, generator):
    """Features of independent orbits (times, N, S, D)."""
    copies = replicate(inputs, times)
    return model.orbit(copies, size, generator).unflatten(0, (times, len(inputs)))


def test_kuf_and_kff_estimates_are_unbiased(model, inputs, targets, generator):
    Kuf, kff, *_ = closed_form(model, inputs, targets)
    H = orbit(model, inputs, 4000, 4, generator).flatten(0, 1)
    with torch.no_grad():
        estimates = orbit_mean_Kuf(model.head.kernel, model.head.Z, H, 2**24).unflatten(1, (4000, 4)).transpose(0, 1)
        assert_unbiased(estimates, torch.as_tensor(Kuf))
        halves = orbit_mean_kff(model.head.kernel, H[:, :2], H[:, 2:], 2**24).unflatten(0, (4000, 4))
        assert_unbiased(halves, torch.as_tensor(kff))


def test_moments_from_halves_are_unbiased(model, inputs, targets, generator):
    *_, mu, tau, _ = closed_form(model, inputs, targets)
    q = model.head.posterior.law()
    with torch.no_grad():
        features = model.orbit_features(replicate(inputs, 4000), 2, num_orbits=2, generator=generator)
        moments = model.head.moments(features, q)
    mu, tau = torch.as_tensor(mu), torch.as_tensor(tau)
    for estimate, truth in (
        (moments.mean_1, mu),
        (moments.mean_2, mu),
        (moments.mean_1 * moments.mean_2, mu**2),
        (moments.tau, tau),
    ):
        assert_unbiased(estimate.unflatten(0, (4000, 4)), truth)


def elbo_estimates(bound, model, inputs, targets, size, generator, num_copies=100, **options):
    """30 independent ELBO estimates, each from one call on many copies of the data."""
    inputs, targets = replicate(inputs, num_copies), replicate(targets, num_copies)
    options |= {"num_data": len(inputs) // num_copies, "orbit_size": size, "generator": generator}
    with torch.no_grad():
        return torch.stack([bound(model, inputs, targets, **options).elbo for _ in range(30)])


def test_unbiased_elbo_is_unbiased_for_the_smallest_orbit(model, inputs, targets, generator):
    *_, elbo = closed_form(model, inputs, targets)
    assert_unbiased(elbo_estimates(unbiased_elbo, model, inputs, targets, 2, generator), elbo)


def test_sample_bound_is_below_the_elbo_and_the_gap_shrinks_like_one_over_s(model, inputs, targets, generator):
    *_, elbo = closed_form(model, inputs, targets)
    bounds = [elbo_estimates(sample_elbo, model, inputs, targets, S, generator) for S in (2, 8, 32)]
    for looser, tighter in zip(bounds, [*bounds[1:], elbo], strict=True):
        assert_mean_below(looser, tighter)
    # E[bound] = ELBO − c/S exactly for the Gaussian likelihood: S·gap is the same number at every S.
    scaled_gaps = [S * (elbo - bound) for S, bound in zip((2, 8, 32), bounds, strict=True)]
    for scaled in scaled_gaps[1:]:
        difference = scaled.mean() - scaled_gaps[0].mean()
        error = (scaled.var() / len(scaled) + scaled_gaps[0].var() / len(scaled_gaps[0])) ** 0.5
        assert abs(difference) < 4 * error


def test_using_the_marginal_in_place_of_moments_is_biased_downwards(model, inputs, targets, generator):
    """Both see the same two orbit points; only one of them knows that products of dependent averages are biased."""
    *_, elbo = closed_form(model, inputs, targets)
    assert_mean_below(elbo_estimates(sample_elbo, model, inputs, targets, 2, generator), elbo)
    assert_unbiased(elbo_estimates(unbiased_elbo, model, inputs, targets, 2, generator), elbo)


@pytest.mark.parametrize("num_orbits", [1, 3])
@pytest.mark.parametrize("num_f_samples", [1, 2])
def test_pathwise_and_exact_law_estimate_the_same_sample_bound(
    model, inputs, targets, generator, num_orbits, num_f_samples
):
    options = {"num_orbits": num_orbits, "num_f_samples": num_f_samples}
    exact = elbo_estimates(sample_elbo, model, inputs, targets, 3, generator, **options)
    # One call shares its functions over all copies, so few copies and many functions tell more.
    options |= {"num_f_samples": 50 * num_f_samples, "pathwise": True}
    pathwise = elbo_estimates(sample_elbo, model, inputs, targets, 3, generator, num_copies=4, **options)
    error = (exact.var() / len(exact) + pathwise.var() / len(pathwise)) ** 0.5
    assert abs(exact.mean() - pathwise.mean()) < 4 * error
    assert math.isfinite(error)


def test_softmax_sample_bound_tightens_with_the_orbit(inputs, generator):
    model = shallow_model(NoiseOrbit(1.0), Softmax(3), random_head(generator))
    labels = torch.tensor([0, 1, 2, 1])
    bounds = [elbo_estimates(sample_elbo, model, inputs, labels, S, generator) for S in (1, 4, 32)]
    assert_mean_below(bounds[0], bounds[1])
    assert_mean_below(bounds[1], bounds[2])


def test_gradient_of_the_unbiased_elbo_in_the_orbit_is_unbiased(model, inputs, targets, generator):
    """d ELBO / d std by central differences of the closed form, against the mean of reparameterised gradients."""

    def elbo_at(std):
        return closed_form(model, inputs, targets, std)[-1]

    truth = (elbo_at(STD + 1e-5) - elbo_at(STD - 1e-5)) / 2e-5
    gradients = torch.empty(30, dtype=torch.float64)
    inputs, targets = replicate(inputs, 50), replicate(targets, 50)
    for k in range(len(gradients)):
        terms = unbiased_elbo(model, inputs, targets, num_data=4, orbit_size=4, generator=generator)
        (gradients[k],) = torch.autograd.grad(terms.elbo, model.orbit.std)
    assert_unbiased(gradients, truth)
