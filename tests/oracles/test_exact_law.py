"""The law of a finite orbit average, against brute force and against samples of functions."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel

import reference
from builders import random_head, rbf_kernel
from montecarlo import assert_unbiased
from orbitune.gp import OrbitFeatures, draw_functions


def unwhitened(head):
    """Mean (M,) and covariance (M, M) of u for each output."""
    L = head.factor_Kuu().L.detach()
    q = head.posterior.law()
    roots = q.root.expand(head.num_outputs, -1, -1)
    return [((L @ m).numpy(), (L @ R.mT @ R @ L.mT).numpy()) for m, R in zip(q.mean.mT, roots, strict=True)]


@pytest.mark.parametrize("shared_covariance", [False, True])
def test_marginal_equals_the_brute_force_joint_of_all_orbit_points(generator, shared_covariance):
    head = random_head(generator, shared_covariance=shared_covariance)
    features = torch.randn(4, 5, 2, generator=generator, dtype=torch.float64)  # (B, S, D)
    marginal = head.marginal(features, head.posterior.law())

    def K(a, b):
        return reference.rbf(a, b, 1.3, 0.8)

    for c, (u_mean, u_cov) in enumerate(unwhitened(head)):
        for n in range(4):
            mean, cov = reference.sparse_posterior(
                K, features[n].numpy(), head.Z.detach().numpy(), u_mean, u_cov, jitter=1.3e-10
            )
            # The average of S jointly Gaussian values: mean of the means, mean over all S² covariances.
            torch.testing.assert_close(marginal.mean[n, c].item(), mean.mean(), rtol=1e-7, atol=1e-7)
            torch.testing.assert_close(marginal.var[n, c].item(), cov.mean(), rtol=1e-7, atol=1e-7)


def test_moments_of_an_exact_orbit_are_those_of_its_marginal(generator):
    head = random_head(generator)
    features = torch.randn(4, 1, 5, 2, generator=generator, dtype=torch.float64)
    q = head.posterior.law()
    marginal, moments = head.marginal(features[:, 0], q), head.moments(OrbitFeatures(features, exact=True), q)
    for got in (moments.mean_1, moments.mean_2, moments.mean):
        torch.testing.assert_close(got, marginal.mean)
    torch.testing.assert_close(moments.tau, marginal.var)
    torch.testing.assert_close(moments.whitened, marginal.whitened)


KERNELS = {
    "rbf": rbf_kernel,
    "ard on two of three dimensions": lambda: ScaleKernel(RBFKernel(ard_num_dims=2, active_dims=[0, 2])).double(),
    "matern 1/2": lambda: ScaleKernel(MaternKernel(nu=0.5)).double(),
    "matern 3/2": lambda: ScaleKernel(MaternKernel(nu=1.5)).double(),
    "matern 5/2": lambda: MaternKernel(nu=2.5).double(),
}


@pytest.mark.parametrize("name", KERNELS)
def test_mean_and_variance_over_function_draws_are_those_of_the_exact_law(generator, name):
    head = random_head(generator, dim=3, num_outputs=2, kernel=KERNELS[name]())
    features = torch.randn(4, 5, 3, generator=generator, dtype=torch.float64)
    q = head.posterior.law()
    with torch.no_grad():
        marginal = head.marginal(features, q)
        values = draw_functions(head, q, 20_000, generator, num_frequencies=16).orbit_mean(features)  # (K, B, C)
    assert_unbiased(values, marginal.mean)
    assert_unbiased((values - marginal.mean).square(), marginal.var)


def test_a_function_draw_is_one_function(generator):
    """The same draw evaluated twice, alone or in company, gives the same values; its orbit mean is the mean of them."""
    head = random_head(generator)
    draws = draw_functions(head, head.posterior.law(), 3, generator)
    points = torch.randn(8, 2, generator=generator, dtype=torch.float64)
    values = draws(points)
    torch.testing.assert_close(draws(points[2:5]), values[:, 2:5])
    torch.testing.assert_close(draws.orbit_mean(points.reshape(2, 4, 2)), values.unflatten(1, (2, 4)).mean(2))


def test_a_function_draw_passes_through_its_inducing_values(generator):
    """With q(u) nearly a point mass all draws agree with its mean at Z."""
    head = random_head(generator)
    head.posterior.precision.mul_(1e14)
    head.posterior.theta.mul_(1e14)
    draws = draw_functions(head, head.posterior.law(), 5, generator)
    expected = head.factor_Kuu().L @ head.posterior.law().mean  # (M, C)
    torch.testing.assert_close(draws(head.Z), expected.expand(5, -1, -1), rtol=1e-3, atol=1e-3)
