"""Composition: what the whole promises beyond its parts."""

import copy

import pytest
import torch
from torch import nn

from orbitune import build_model, natural_gradient_step, sample_elbo
from orbitune.backbones import Identity, MnistCNN
from orbitune.errors import InputError
from orbitune.gp import CholeskyPosterior, GPHead
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.model import InvariantGP
from orbitune.orbits import AffineOrbit, IdentityOrbit


@pytest.fixture
def images(generator):
    return torch.rand(12, 2, 9, 8, generator=generator)


@pytest.fixture
def labels(generator):
    return torch.randint(3, (12,), generator=generator)


@pytest.fixture
def model(images, generator):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        backbone = MnistCNN((2, 9, 8), num_features=5)
    return build_model(AffineOrbit(), backbone, Softmax(3), images, num_inducing=6, generator=generator)


def test_the_last_layer_is_double_and_the_network_keeps_its_precision(model):
    assert {p.dtype for p in model.head.parameters()} == {torch.float64}
    assert {p.dtype for p in model.backbone.parameters()} == {torch.float32}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_whole_model_moves_to_a_dtype(model, images, labels, dtype):
    model = model.to(dtype)
    assert {t.dtype for t in model.state_dict().values() if t.is_floating_point()} == {dtype}
    terms = sample_elbo(model, images.to(dtype), labels, num_data=12, orbit_size=3)
    assert terms.elbo.dtype == dtype and terms.elbo.isfinite()
    natural_gradient_step(model, terms, rate=0.5)
    assert model.predict(images.to(dtype), 3).dtype == dtype


def test_the_model_can_live_on_the_meta_device(model):
    """Every tensor follows ``.to``: nothing is left behind on the CPU."""
    assert {t.device.type for t in model.to("meta").state_dict().values()} == {"meta"}


def test_state_dict_round_trip_restores_predictions(model, images, labels, generator):
    terms = sample_elbo(model, images, labels, num_data=12, orbit_size=3, generator=generator)
    fresh = copy.deepcopy(model)
    natural_gradient_step(model, terms, rate=0.5)
    fresh.load_state_dict(model.state_dict())
    predictions = [m.predict(images, 4, generator=torch.Generator().manual_seed(2)) for m in (model, fresh)]
    assert torch.equal(*predictions)


def test_probabilities_sum_to_one_and_log_density_is_their_logarithm(model, images, labels):
    probabilities = model.predict(images, 4, generator=torch.Generator().manual_seed(2))
    log_density = model.log_predictive_density(images, labels, 4, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(probabilities.sum(1), torch.ones(12, dtype=torch.float64))
    torch.testing.assert_close(log_density, probabilities.gather(1, labels[:, None])[:, 0].log())


def test_parameter_groups_are_a_partition(model):
    groups = model.parameter_groups()
    assert list(groups) == ["orbit", "backbone", "kernel", "inducing", "variational", "likelihood"]
    assert sum(len(group) for group in groups.values()) == len(list(model.parameters()))


def test_a_parameter_in_two_parts_is_refused(model):
    model.likelihood.register_parameter("stray", model.head.Z)
    with pytest.raises(InputError, match="exactly one part"):
        model.parameter_groups()


def test_posterior_parameters_for_an_optimiser_are_a_group(model):
    head = GPHead(model.head.kernel, model.head.Z, CholeskyPosterior(6, 3))
    other = InvariantGP(IdentityOrbit(), Identity(), head, Softmax(3))
    assert len(other.parameter_groups()["variational"]) == 2


def test_building_a_model_leaves_the_training_mode_of_the_network_alone(images, generator):
    for mode in (True, False):
        backbone = nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(144, 4)).train(mode)
        build_model(IdentityOrbit(), backbone, Gaussian(1), images, num_inducing=4, generator=generator)
        assert backbone.training is mode


def test_gaussian_outputs_share_one_covariance_and_softmax_outputs_do_not(images, model, generator):
    gaussian = build_model(
        IdentityOrbit(), Identity(), Gaussian(3, labels=True), images, num_inducing=6, generator=generator
    )
    assert gaussian.head.posterior.precision.shape == (1, 6, 6)
    assert model.head.posterior.precision.shape == (3, 6, 6)


def test_printing_the_model_shows_the_ranges(model):
    assert "rotation=[-0.05, 0.05]" in repr(model)
