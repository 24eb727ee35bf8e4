"""Bounds as functions of their arguments."""

import math

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, one_hot

from builders import NoiseOrbit, random_head, shallow_model
from orbitune.errors import InputError
from orbitune.likelihoods import Bernoulli, Gaussian, Poisson, Softmax
from orbitune.network import OrbitNetwork
from orbitune.objectives import log_likelihood, natural_gradient_step, sample_elbo, unbiased_elbo
from orbitune.orbits import IdentityOrbit, SignFlip
from orbitune.random import permutation, symmetric_beta


def normals(generator, *shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_batch_as_large_as_the_number_of_classes_is_no_special_case(generator):
    """Each datum is scored by its own label: the bound of the batch is the mean of the bounds of its members."""
    model = shallow_model(IdentityOrbit(), Softmax(6), random_head(generator, num_outputs=6))
    X, y = normals(generator, 6, 2), torch.arange(6)
    together = sample_elbo(model, X, y, num_data=6, orbit_size=1, num_f_samples=20_000, generator=generator)
    alone = [
        sample_elbo(model, X[n : n + 1], y[n : n + 1], num_data=1, orbit_size=1, num_f_samples=20_000).data_fit
        for n in range(6)
    ]
    torch.testing.assert_close(together.data_fit, sum(alone), rtol=0.02, atol=0.0)
    rolled = sample_elbo(model, X, y.roll(1), num_data=6, orbit_size=1, num_f_samples=20_000, generator=generator)
    assert abs(rolled.data_fit - together.data_fit) > 0.1


def test_data_term_scales_with_the_number_of_data_and_kl_does_not(generator):
    model = shallow_model(SignFlip(), Gaussian(3), random_head(generator))
    X, Y = normals(generator, 4, 2), normals(generator, 4, 3)
    small, large = (unbiased_elbo(model, X, Y, num_data=N, orbit_size=2) for N in (4, 400))
    torch.testing.assert_close(large.data_fit, 100 * small.data_fit)
    torch.testing.assert_close(large.kl, small.kl)
    torch.testing.assert_close(large.per_datum * 400, large.elbo)


def test_both_bounds_agree_for_a_finite_orbit(generator):
    model = shallow_model(SignFlip(), Gaussian(3), random_head(generator))
    X, Y = normals(generator, 4, 2), normals(generator, 4, 3)
    unbiased = unbiased_elbo(model, X, Y, num_data=4, orbit_size=2)
    for num_orbits in (1, 3):
        sample = sample_elbo(model, X, Y, num_data=4, orbit_size=7, num_orbits=num_orbits)
        torch.testing.assert_close(sample.elbo, unbiased.elbo)


def test_an_even_function_is_learned_as_even(generator):
    model = shallow_model(SignFlip(), Bernoulli(), random_head(generator, num_outputs=1))
    X = normals(generator, 5, 2)
    torch.testing.assert_close(model.predict(X, 1), model.predict(-X, 1))


def test_several_orbits_per_input_enter_the_natural_gradient_with_equal_weight(generator):
    """A = 2 copies of the same exact orbit would count each datum once: Λ* = I + Σ_n β a aᵀ."""
    model = shallow_model(NoiseOrbit(1e-9), Gaussian(3, 0.3), random_head(generator, shared_covariance=True))
    X, Y = normals(generator, 4, 2), normals(generator, 4, 3)
    states = []
    for num_orbits in (1, 2):
        terms = sample_elbo(model, X, Y, num_data=4, orbit_size=1, num_orbits=num_orbits, generator=generator)
        natural_gradient_step(model, terms, rate=1.0)
        states.append((model.head.posterior.precision.clone(), model.head.posterior.theta.clone()))
    torch.testing.assert_close(states[0], states[1], rtol=1e-5, atol=1e-5)


def test_fixed_generator_fixes_the_estimate(generator):
    model = shallow_model(NoiseOrbit(), Softmax(3), random_head(generator))
    X, y = normals(generator, 4, 2), torch.tensor([0, 1, 2, 2])
    for pathwise in (False, True):
        first, again, other = (
            sample_elbo(
                model,
                X,
                y,
                num_data=4,
                orbit_size=3,
                pathwise=pathwise,
                generator=torch.Generator().manual_seed(seed),
            ).elbo
            for seed in (5, 5, 6)
        )
        assert first == again != other


@pytest.mark.parametrize("pathwise", [False, True])
def test_every_parameter_of_the_model_receives_a_gradient(generator, pathwise):
    model = shallow_model(NoiseOrbit(), Gaussian(3), random_head(generator))
    X, Y = normals(generator, 4, 2), normals(generator, 4, 3)
    terms = sample_elbo(model, X, Y, num_data=4, orbit_size=3, pathwise=pathwise, generator=generator)
    terms.elbo.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def network(likelihood):
    readout = nn.Linear(2, likelihood.num_outputs).double()
    return OrbitNetwork(IdentityOrbit(), nn.Identity(), readout, likelihood)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_label_smoothing_is_pytorchs(generator, smoothing):
    X, y = normals(generator, 6, 2), torch.tensor([0, 1, 2, 3, 0, 1])
    several, two = network(Softmax(4)), network(Bernoulli())
    found = log_likelihood(several, X, y, label_smoothing=smoothing).per_datum
    torch.testing.assert_close(found, -cross_entropy(several.readout(X), y, label_smoothing=smoothing))
    ones = (y % 2).double()[:, None]
    found = log_likelihood(two, X, ones, label_smoothing=smoothing).per_datum
    smoothed = (1 - smoothing) * ones + smoothing / 2
    torch.testing.assert_close(found, -binary_cross_entropy_with_logits(two.readout(X), smoothed))


@pytest.mark.parametrize("likelihood", [Gaussian(1), Poisson()])
def test_targets_that_are_no_labels_cannot_be_smoothed(generator, likelihood):
    X, y = normals(generator, 3, 2), torch.ones(3, 1, dtype=torch.float64)
    with pytest.raises(InputError, match=f"likelihoods of labels.*not {type(likelihood).__name__}"):
        log_likelihood(network(likelihood), X, y, label_smoothing=0.1)


def test_mixup_is_the_likelihood_of_mixed_images_under_mixed_labels(generator):
    X, y = normals(generator, 6, 2), torch.tensor([0, 1, 2, 3, 0, 1])
    model, state = network(Softmax(4)), generator.get_state()
    found = log_likelihood(model, X, y, mixup=1.0, label_smoothing=0.2, generator=generator).per_datum
    partner = permutation(6, generator.set_state(state), X.device)
    share = symmetric_beta(6, 1.0, generator, X)[:, None]
    codes = one_hot(y, 4).double()
    logits = model.readout(X.lerp(X[partner], share))
    expected = -cross_entropy(logits, codes.lerp(codes[partner], share), label_smoothing=0.2)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("likelihood", [Softmax(3), Gaussian(2), Poisson(), Bernoulli()])
def test_mixing_equal_data_changes_nothing(generator, likelihood):
    X, y = normals(generator, 1, 2).repeat(5, 1), likelihood.example_targets()[:1].repeat_interleave(5, 0)
    y = y.double() if y.is_floating_point() else y
    for dtype in (torch.float32, torch.float64):  # targets may be of double precision where images are not
        model = network(likelihood).to(dtype)
        mixed = log_likelihood(model, X.to(dtype), y, mixup=0.3, generator=generator)
        torch.testing.assert_close(mixed.per_datum, log_likelihood(model, X.to(dtype), y).per_datum)


@pytest.mark.parametrize("alpha", [-1.0, math.inf, math.nan])
def test_an_alpha_that_is_none_is_refused(generator, alpha):
    X, y = normals(generator, 3, 2), torch.arange(3)
    with pytest.raises(InputError, match=r"mixup is the α of a Beta\(α, α\) .* got "):
        log_likelihood(network(Softmax(3)), X, y, mixup=alpha)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_shares_of_mixup_have_the_moments_of_their_law(generator, alpha):
    share = symmetric_beta(4000, alpha, generator, torch.zeros(1, dtype=torch.float64))
    variance = 1 / (4 * (2 * alpha + 1))
    assert ((share >= 0) & (share <= 1)).all()
    assert abs(share.mean() - 0.5) < 4 * math.sqrt(variance / 4000)
    deviations = (share - 0.5) ** 2
    assert abs(deviations.mean() - variance) < 4 * deviations.std() / math.sqrt(4000)
