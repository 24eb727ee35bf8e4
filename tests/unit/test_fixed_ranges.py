"""Models at a given orbit: orbit points per step, the network phase under the ELBO, compositions without a network."""

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from orbitune.backbones import Identity
from orbitune.config import OrbitConfig
from orbitune.errors import InputError
from orbitune.learners import AugmentedNetwork, CrossFit, FixedRanges, MaximumLikelihood, PlainNetwork, Problem
from orbitune.likelihoods import Gaussian, Poisson, Softmax
from orbitune.orbits import AffineOrbit, IdentityOrbit
from orbitune.saving import make_orbit
from orbitune.training import Run


class CountingBackbone(nn.Sequential):
    """Flatten and a layer; remembers how many images each training call had."""

    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(36, 5), nn.ReLU())
        self.calls = []

    def forward(self, images):
        if self.training:
            self.calls.append(len(images))
        return super().forward(images)


def make_problem(likelihood=None, orbit=None, make_backbone=CountingBackbone):
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(40) % 2
    images = torch.rand(40, 1, 6, 6, generator=generator) * 0.5 + 0.5 * labels[:, None, None, None]
    orbit = AffineOrbit({"rotation": (-0.5, 0.5)}, learn=()) if orbit is None else orbit
    return Problem(images, labels, orbit, likelihood or Softmax(2), make_backbone)


def small(**options):
    network = PlainNetwork(epochs=1.0, batch_size=10)
    return FixedRanges(
        **{"network": network, "head_steps": 2, "num_inducing": 6, "orbit_size": 4, "batch_size": 10} | options
    )


def fresh(likelihood):
    return copy.deepcopy(likelihood)  # learning moves the one it is given


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.backbone.parameters()])


def test_the_network_sees_as_many_orbit_points_per_step_as_it_is_told():
    outcome = AugmentedNetwork(PlainNetwork(epochs=1.0, batch_size=10, orbit_size=3)).learn(make_problem(), Run(None))
    assert outcome.model.backbone.calls == [30] * 10  # ten minibatches, as in every epoch of a small set


@pytest.mark.parametrize("learner", [PlainNetwork(epochs=20.0), MaximumLikelihood(steps=200)], ids=["plain", "ML"])
def test_a_network_with_smoothed_labels_stays_less_certain(learner):
    learner = replace(learner, learning_rate=0.03, batch_size=10, orbit_size=1)

    def certainty(smoothing):
        problem = make_problem(make_backbone=lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, 5)))
        model = replace(learner, label_smoothing=smoothing).learn(problem, Run(None)).model
        return model.predict(problem.inputs).amax(1).mean()

    assert certainty(0.0) > 0.95
    assert abs(certainty(0.5) - 0.75) < 0.1  # of its label and of all, in equal shares: ½ + ½ · ½


def test_a_network_of_mixed_images_stays_less_certain():
    def certainty(mixup):
        problem = make_problem(make_backbone=lambda: nn.Sequential(nn.Flatten(), nn.Linear(36, 5)))
        learner = PlainNetwork(epochs=60.0, learning_rate=0.03, batch_size=10, mixup=mixup)
        return learner.learn(problem, Run(None)).model.predict(problem.inputs).amax(1).mean()

    doubts = {mixup: 1 - certainty(mixup) for mixup in (0.0, 1.0)}
    assert doubts[1.0] > 5 * doubts[0.0]  # 0.027 and 0.0004


@pytest.mark.parametrize("learner", [PlainNetwork, MaximumLikelihood])
def test_labels_cannot_be_smoothed_away(learner):
    with pytest.raises(InputError, match="label_smoothing must be less than 1, got 1"):
        learner(label_smoothing=1.0)


def test_an_augmented_network_keeps_the_orbit_and_a_plain_one_has_none():
    problem = make_problem(orbit=AffineOrbit({"rotation": (-0.5, 0.5)}, learn=("rotation",)))
    augmented = AugmentedNetwork(PlainNetwork(epochs=1.0)).learn(problem, Run(None)).model
    assert augmented.orbit.ranges()["rotation"] == (-0.5, 0.5)
    assert isinstance(PlainNetwork(epochs=1.0).learn(problem, Run(None)).model.orbit, IdentityOrbit)


def test_an_augmented_network_may_be_shown_the_image_as_it_is(generator):
    problem = make_problem()
    learner = AugmentedNetwork(PlainNetwork(epochs=1.0), average=False)
    as_it_is = learner.learn(problem, Run(None)).model
    averaging = replace(learner, average=True).learn(problem, Run(None)).model
    assert torch.equal(weights(as_it_is), weights(averaging))
    for model, same in ((as_it_is, True), (averaging, False)):
        once, again = (model.predict(problem.inputs, 1, generator=generator) for _ in range(2))
        assert torch.equal(once, again) == same


def test_a_network_leaves_the_likelihood_of_the_problem_alone():
    problem = make_problem(Gaussian(2, labels=True))
    before = copy.deepcopy(problem.likelihood.state_dict())
    network = PlainNetwork(epochs=2.0).learn(problem, Run(None)).model
    assert str(problem.likelihood.state_dict()) == str(before)
    assert str(network.likelihood.state_dict()) != str(before)


@pytest.mark.parametrize("likelihood", [Softmax(2), Gaussian(2, labels=True)], ids=["softmax", "gaussian"])
def test_the_elbo_phase_moves_network_and_posterior_and_nothing_else(likelihood):
    before, after = (
        small(elbo_steps=steps, elbo_batch_size=10).learn(make_problem(fresh(likelihood)), Run(None)).model
        for steps in (0, 3)
    )
    assert not torch.equal(weights(before), weights(after))
    assert not torch.equal(before.head.posterior.theta, after.head.posterior.theta)
    assert torch.equal(before.head.Z, after.head.Z)
    for old, new in zip(before.head.kernel.parameters(), after.head.kernel.parameters(), strict=True):
        assert torch.equal(old, new)


def test_the_elbo_phase_takes_batches_of_its_own_size_with_the_orbit_of_the_head():
    model = small(elbo_steps=3, elbo_batch_size=7).learn(make_problem(), Run(None)).model
    assert model.backbone.calls[-3:] == [7 * 4] * 3


def test_the_elbo_phase_raises_the_bound():
    settings = {"network": PlainNetwork(epochs=3.0, batch_size=10), "head_steps": 60, "elbo_learning_rate": 0.01}
    before, after = (small(elbo_steps=n, **settings).learn(make_problem(), Run(None)) for n in (0, 100))
    assert after.elbo_per_datum > before.elbo_per_datum


def test_networks_of_a_gaussian_on_labels_are_trained_under_softmax():
    assert isinstance(Gaussian(3, labels=True).for_network(), Softmax)
    regression = Gaussian(2, noise_variance=0.3)
    assert regression.for_network().noise_variance == regression.noise_variance
    assert regression.for_network() is not regression
    assert isinstance(Poisson().for_network(), Poisson)


def test_the_noise_of_the_gp_does_not_start_from_what_the_network_memorised():
    likelihood = Gaussian(2, noise_variance=0.05, labels=True)
    model = (
        small(network=PlainNetwork(epochs=20.0, batch_size=10), head_steps=0)
        .learn(make_problem(likelihood), Run(None))
        .model
    )
    assert model.likelihood.noise_variance.item() == pytest.approx(0.05)


SHALLOW = CrossFit(
    folds=1,
    max_rounds=2,
    steps=4,
    warm_first=3,
    warm=2,
    batch_size=10,
    orbit_size=4,
    num_inducing=6,
    final=FixedRanges(PlainNetwork(epochs=0.0), head_steps=2, num_inducing=6, batch_size=10, orbit_size=4),
)


def test_without_a_network_the_evidence_of_all_data_moves_the_ranges():
    problem = make_problem(orbit=AffineOrbit(learn=("rotation",)), make_backbone=Identity)
    outcome = SHALLOW.learn(problem, Run(None))
    assert outcome.model.orbit.ranges()["rotation"] != pytest.approx((-0.05, 0.05))
    assert outcome.model.head.Z.shape == (6, 36)


def test_one_fold_with_a_network_is_refused():
    with pytest.raises(InputError, match="has seen it"):
        SHALLOW.learn(make_problem(orbit=AffineOrbit()), Run(None))


@pytest.mark.parametrize("coordinates", ["direct", "reciprocal", "log"])
def test_the_coordinates_of_the_ascent_are_those_asked_for(coordinates):
    problem = make_problem(orbit=AffineOrbit(learn=("rotation",), symmetric=True), make_backbone=Identity)
    model = replace(SHALLOW, coordinates=coordinates, orbit_learning_rate=0.01).learn(problem, Run(None)).model
    assert type(model.orbit.learned).__name__.lower() == f"{coordinates}ranges"


def test_no_orbit_in_a_configuration_is_the_identity():
    assert isinstance(make_orbit(OrbitConfig(learn=())), IdentityOrbit)
    assert isinstance(make_orbit(OrbitConfig(learn=(), ranges={"rotation": (-1.0, 1.0)})), AffineOrbit)
    assert isinstance(make_orbit(OrbitConfig()), AffineOrbit)


@pytest.mark.parametrize("move", [False, True])
def test_inducing_inputs_of_a_shallow_model_move_where_they_are_told_to(move):
    learner = small(move_inducing=move, head_learning_rate=0.01)
    model = learner.learn(make_problem(make_backbone=Identity), Run(None)).model
    images = make_problem().inputs.flatten(1).to(model.head.Z)
    from_start = (model.head.Z.detach()[:, None] - images).abs().amax(-1).amin(-1)  # to the nearest training image
    assert (from_start > 1e-3).all() if move else (from_start == 0).all()
    assert (from_start < 0.021).all()  # at most two steps of 0.01 in every pixel
