"""Natural-gradient steps, against the exact Gaussian answer and against generic optimisers."""

from itertools import pairwise

import pytest
import torch

import reference
from builders import random_head, rbf_kernel, shallow_model
from orbitune.gp import CholeskyPosterior, GPHead, JitterPolicy, NaturalPosterior, collapsed_bound
from orbitune.likelihoods import Bernoulli, Gaussian, Poisson, Softmax
from orbitune.objectives import collapsed_elbo, natural_gradient_step, sample_elbo, unbiased_elbo
from orbitune.orbits import IdentityOrbit, SignFlip


def natural_step(model, X, y, rate, seed=0, num_f_samples=512):
    terms = sample_elbo(model, X, y, num_data=len(X), orbit_size=1, num_f_samples=num_f_samples)
    generator = torch.Generator().manual_seed(seed)
    natural_gradient_step(model, terms, rate=rate, num_f_samples=num_f_samples, generator=generator)


@pytest.mark.parametrize("shared_covariance", [False, True])
@pytest.mark.parametrize("bound", [unbiased_elbo, sample_elbo])
def test_one_full_step_on_all_data_is_the_exact_sgpr_solution(generator, shared_covariance, bound):
    """From a random q(u), for an orbit with two elements: mean, covariance and bound, against N × N numpy."""
    head = random_head(generator, num_outputs=2, shared_covariance=shared_covariance)
    model = shallow_model(SignFlip(), Gaussian(2, 0.3), head)
    X = torch.randn(12, 2, generator=generator, dtype=torch.float64)
    Y = torch.randn(12, 2, generator=generator, dtype=torch.float64)
    natural_gradient_step(model, bound(model, X, Y, num_data=12, orbit_size=1), rate=1.0)

    L, q = head.factor_Kuu().L, head.posterior.law()
    Z = head.Z.detach().numpy()
    K = reference.even_orbit_kernel(Z, 1.3, 0.8)
    total = 0.0
    for c in range(2):
        R = q.root[0 if shared_covariance else c]
        mean, cov, best = reference.sgpr(K, X.numpy(), Z, Y[:, c].numpy(), 0.3, 1.3e-10)
        torch.testing.assert_close(L @ q.mean[:, c], torch.as_tensor(mean), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(L @ R.mT @ R @ L.mT, torch.as_tensor(cov), rtol=1e-5, atol=1e-5)
        total += best
    after = bound(model, X, Y, num_data=12, orbit_size=1).elbo
    collapsed = collapsed_elbo(model, X, Y, orbit_size=1)
    assert after.item() == pytest.approx(total, rel=1e-7)
    assert collapsed.item() == pytest.approx(total, rel=1e-7)


def test_adding_inducing_points_never_lowers_the_optimal_gaussian_bound(generator):
    X = torch.randn(30, 2, generator=generator, dtype=torch.float64)
    Y = torch.sin(3 * X[:, :1]) + 0.1 * torch.randn(30, 1, generator=generator, dtype=torch.float64)
    Z = torch.randn(12, 2, generator=generator, dtype=torch.float64)
    bounds = []
    for M in range(1, 13):
        head = GPHead(rbf_kernel(), Z[:M], NaturalPosterior(M, 1), jitter=JitterPolicy(start=1e-12))
        bounds.append(collapsed_bound(head.project(X.unsqueeze(1)), Y, torch.tensor(0.1, dtype=torch.float64)).item())
    assert all(after >= before - 1e-6 for before, after in pairwise(bounds))
    assert bounds[-1] > bounds[0] + 1


CASES = {
    "bernoulli": (lambda: Bernoulli(), lambda f: (f[:, 0] > 0).long(), 1),
    "poisson": (lambda: Poisson(), lambda f: (2 * f[:, 0]).exp().floor(), 1),
    "softmax": (lambda: Softmax(3), lambda f: f.argmax(-1), 3),
}


@pytest.mark.parametrize("name", CASES)
def test_natural_gradient_steps_raise_the_elbo_and_reach_the_optimum_of_a_generic_optimiser(generator, name):
    make_likelihood, make_targets, num_outputs = CASES[name]
    X = torch.randn(24, 2, generator=generator, dtype=torch.float64)
    directions = torch.randn(2, num_outputs, generator=generator, dtype=torch.float64)
    y = make_targets(torch.sin(2 * X @ directions))
    Z = X[:8]

    def elbo(model):
        """One fixed set of draws for every evaluation: the same deterministic function for both optimisers."""
        fixed = torch.Generator().manual_seed(1)
        return sample_elbo(model, X, y, num_data=24, orbit_size=1, num_f_samples=2048, generator=fixed).elbo

    natural = shallow_model(
        IdentityOrbit(), make_likelihood(), GPHead(rbf_kernel(), Z, NaturalPosterior(8, num_outputs))
    )
    history = [elbo(natural).item()]
    for _ in range(25):
        natural_step(natural, X, y, rate=0.5)
        history.append(elbo(natural).item())
    assert all(after > before for before, after in pairwise(history[:6]))

    generic = shallow_model(
        IdentityOrbit(), make_likelihood(), GPHead(rbf_kernel(), Z, CholeskyPosterior(8, num_outputs))
    )
    parameters = generic.parameter_groups()["variational"]
    optimiser = torch.optim.LBFGS(parameters, max_iter=150, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        loss = -elbo(generic)
        loss.backward()
        return loss

    optimiser.step(closure)
    best = elbo(generic).item()
    assert best > history[0] + 1
    # Quadrature is deterministic; Softmax estimates its expectations from different draws in the two optimisers.
    tolerance = 0.05 if name == "softmax" else 1e-3
    assert history[-1] == pytest.approx(best, abs=tolerance)
    q, q_generic = natural.head.posterior.law(), generic.head.posterior.law()
    torch.testing.assert_close(q.mean, q_generic.mean, atol=10 * tolerance, rtol=0.05)


def test_minibatch_steps_average_to_the_full_data_answer(generator):
    """Robbins–Monro: with rates 1/t, steps on single minibatches converge to the full-data step."""
    X = torch.randn(20, 2, generator=generator, dtype=torch.float64)
    Y = torch.randn(20, 1, generator=generator, dtype=torch.float64)
    heads = [GPHead(rbf_kernel(), X[:5], NaturalPosterior(5, 1, shared_covariance=True)) for _ in range(2)]
    full, stochastic = (shallow_model(IdentityOrbit(), Gaussian(1, 0.3), head) for head in heads)
    natural_step(full, X, Y, rate=1.0)
    for t, batch in enumerate(torch.arange(20).split(4), start=1):
        terms = sample_elbo(stochastic, X[batch], Y[batch], num_data=20, orbit_size=1)
        natural_gradient_step(stochastic, terms, rate=1 / t)
    torch.testing.assert_close(heads[1].posterior.precision, heads[0].posterior.precision)
    torch.testing.assert_close(heads[1].posterior.theta, heads[0].posterior.theta)
