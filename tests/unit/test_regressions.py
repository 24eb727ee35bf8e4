"""Mistakes that were made once."""

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch import nn

from builders import random_head, rbf_kernel
from orbitune import build_model
from orbitune.errors import InputError, NotLogConcaveError, UnsupportedKernelError
from orbitune.gp import OrbitMarginal, default_kernel, draw_functions, select_inducing
from orbitune.likelihoods import Bernoulli, FactorizedLikelihood, Gaussian, Poisson, Softmax, check_log_concave
from orbitune.likelihoods.base import gauss_hermite
from orbitune.orbits import IdentityOrbit


def test_greedy_inducing_inputs_are_distinct_in_single_precision_too(generator):
    features = torch.randn(200, 2, generator=generator)
    Z = select_inducing(features, 150, default_kernel(features, generator), "greedy")
    assert len(Z.unique(dim=0)) == len(Z) < 150


def test_pathwise_refuses_active_dims_that_it_would_not_see(generator):
    kernel = ScaleKernel(RBFKernel(), active_dims=(0,)).double()
    head = random_head(generator, kernel=kernel)
    with pytest.raises(UnsupportedKernelError, match="active_dims"):
        draw_functions(head, head.posterior.law(), 2, generator)


class Wide(FactorizedLikelihood):
    """A user's Gaussian, by quadrature."""

    def log_prob_each(self, f, targets):
        return torch.distributions.Normal(f, 1.0).log_prob(targets)

    def conditional_mean(self, f):
        return f

    def example_targets(self):
        return torch.zeros(1, 1)


def test_predictive_density_of_a_distant_target():
    law = OrbitMarginal(torch.zeros(1, 1).double(), torch.full((1, 1), 1e4).double(), torch.zeros(1, 1).double())
    target = torch.full((1, 1), 500.0).double()
    exact = torch.distributions.Normal(0.0, 10001**0.5).log_prob(target).sum(-1)
    torch.testing.assert_close(Wide(1).log_predictive(law, target), exact)


def test_predictive_density_in_inference_mode():
    law = OrbitMarginal(torch.zeros(3, 1), torch.ones(3, 1), torch.zeros(3, 1))
    with torch.inference_mode():
        torch.testing.assert_close(Bernoulli().log_predictive(law, torch.ones(3, 1)).exp(), torch.full((3,), 0.5))


def test_prediction_leaves_batch_statistics_and_modes_alone(generator):
    images = torch.rand(8, 1, 6, 6, generator=generator)
    frozen = nn.BatchNorm2d(1).eval()
    backbone = nn.Sequential(nn.BatchNorm2d(1), frozen, nn.Flatten())
    model = build_model(IdentityOrbit(), backbone, Gaussian(1), images, num_inducing=4, generator=generator)
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    model.predict(images, 1)
    assert all(torch.equal(value, before[name]) for name, value in backbone.state_dict().items())
    assert backbone.training and not frozen.training


def test_log_concavity_is_probed_quickly_for_many_classes():
    for likelihood in (Softmax(1000), Gaussian(1000, labels=True)):
        check_log_concave(likelihood, num_pairs=64)


class StudentT(FactorizedLikelihood):
    """Log-concave near the target only."""

    def log_prob_each(self, f, targets):
        return torch.distributions.StudentT(4.0, f, 30.0).log_prob(targets)

    def conditional_mean(self, f):
        return f

    def example_targets(self):
        return torch.zeros(1, 1)


def test_a_wide_student_t_is_refused():
    with pytest.raises(NotLogConcaveError, match="Counter-example"):
        check_log_concave(StudentT(1))


def test_no_draw_at_all_is_refused(generator):
    head = random_head(generator, kernel=rbf_kernel())
    with pytest.raises(InputError, match="at least one draw"):
        draw_functions(head, head.posterior.law(), 0, generator)


def test_the_prediction_for_a_row_does_not_depend_on_its_neighbours(generator):
    mean, var = torch.randn(5, 3, generator=generator), torch.rand(5, 3, generator=generator)
    law = OrbitMarginal(mean, var, torch.zeros(5, 1))
    row = OrbitMarginal(mean[3:4], var[3:4], torch.zeros(1, 1))
    together, alone = (Softmax(3).predictive_mean(x, 16, torch.Generator().manual_seed(0)) for x in (law, row))
    torch.testing.assert_close(together[3:4], alone)


def test_the_variance_of_a_count_is_that_of_the_mixture(generator):
    law = OrbitMarginal(torch.tensor([[0.5]]).double(), torch.tensor([[0.3]]).double(), torch.zeros(1, 1).double())
    x, weights = gauss_hermite(50, like=law.mean)
    rate = (0.5 + 0.3**0.5 * x).exp()
    expected = weights @ (rate + rate.square()) - (weights @ rate).square()  # E[y²] − E[y]²
    torch.testing.assert_close(Poisson().predictive_variance(law)[0, 0], expected)
