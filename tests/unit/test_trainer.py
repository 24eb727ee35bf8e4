"""Phases move what they name, and nothing else."""

import pytest
import torch
from torch import nn

from orbitune import build_model
from orbitune.errors import InputError
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.network import build_network
from orbitune.orbits import AffineOrbit
from orbitune.training import Minibatches, Phase, Run, Schedule, train, trainer


def make_backbone():
    return nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3), nn.Linear(48, 4)
    )


@pytest.fixture
def images(generator):
    return torch.rand(30, 1, 6, 6, generator=generator)


@pytest.fixture
def labels(generator):
    return torch.randint(3, (30,), generator=generator)


def gp(images, labels=True, **options):
    generator = torch.Generator().manual_seed(0)
    likelihood = Gaussian(3, labels=True) if options.pop("gaussian", False) else Softmax(3)
    network = build_network(AffineOrbit(), make_backbone, likelihood, images, generator)
    return build_model(AffineOrbit(), network.backbone, likelihood, images, num_inducing=8, generator=generator)


def changed(model, before):
    return {
        name.split(".")[0] + "." + name.split(".")[1]
        for name, value in model.state_dict().items()
        if not torch.equal(value, before[name])
    }


def snapshot(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


PARTS = {
    "orbit": {"orbit.learned"},
    "kernel": {"head.kernel"},
    "inducing": {"head.Z"},
    "likelihood": {"likelihood.log_noise_variance"},
}


@pytest.mark.parametrize("group", PARTS)
def test_only_the_named_group_moves(images, labels, group):
    model = gp(images, gaussian=True)
    # With q(u) at the prior the bound would not depend on the inducing inputs.
    train(model, images, labels, Phase("q", "unbiased", (), 1, natural_rate=0.5, orbit_size=2), Run(None))
    before = snapshot(model)
    train(model, images, labels, Phase("p", "unbiased", (group,), 3, batch_size=10, orbit_size=2), Run(None))
    assert changed(model, before) == PARTS[group]


def test_a_network_phase_moves_the_backbone_and_its_batch_statistics_only(images, labels):
    model = gp(images)
    before = snapshot(model)
    train(model, images, labels, Phase("p", "sample", ("backbone",), 3, batch_size=10, orbit_size=2), Run(None))
    assert all(name.startswith("backbone.") for name in changed(model, before))
    assert "backbone.1" in changed(model, before)  # BatchNorm


def test_natural_steps_move_q_and_nothing_else(images, labels):
    model = gp(images)
    before = snapshot(model)
    train(model, images, labels, Phase("p", "sample", (), 2, natural_rate=0.5, orbit_size=2), Run(None))
    assert changed(model, before) == {"head.posterior"}


def test_what_the_user_fixed_beats_every_phase(images, labels):
    model = gp(images, gaussian=True)
    model.head.kernel.raw_outputscale.requires_grad_(False)
    model.likelihood.log_noise_variance.requires_grad_(False)
    before = snapshot(model)
    phase = Phase("p", "unbiased", ("kernel", "likelihood", "orbit"), 3, batch_size=10, orbit_size=2)
    train(model, images, labels, phase, Run(None))
    after = model.state_dict()
    assert torch.equal(after["head.kernel.raw_outputscale"], before["head.kernel.raw_outputscale"])
    assert torch.equal(after["likelihood.log_noise_variance"], before["likelihood.log_noise_variance"])
    assert not torch.equal(
        after["head.kernel.base_kernel.raw_lengthscale"], before["head.kernel.base_kernel.raw_lengthscale"]
    )
    assert not model.head.kernel.raw_outputscale.requires_grad and model.head.Z.requires_grad


def test_training_does_not_touch_the_global_generator(images, labels):
    network = build_network(AffineOrbit(), make_backbone, Softmax(3), images, torch.Generator().manual_seed(0))
    state = torch.random.get_rng_state()
    train(network, images, labels, Phase("p", "log-likelihood", ("backbone",), 2), Run(None))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_the_same_seed_gives_the_same_network_with_dropout_too(images, labels):
    results = []
    for _ in range(2):
        run = Run(None, seed=5)
        network = build_network(AffineOrbit(), make_backbone, Softmax(3), images, run.generator)
        train(network, images, labels, Phase("p", "log-likelihood", ("backbone", "readout"), 4, batch_size=7), run)
        results.append(torch.cat([p.flatten() for p in network.parameters()]))
    assert torch.equal(*results)


@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_a_convolutional_network_stopped_and_resumed_is_the_same(tmp_path, images, labels, stop_after, monkeypatch):
    images = images.repeat(1, 2, 1, 1)  # with two channels, channels-last weights lie elsewhere in memory

    def learn(run):
        likelihood = Softmax(3)
        network = build_network(
            AffineOrbit(),
            lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten()),
            likelihood,
            images,
            run.generator,
        )
        run.track("network", network)
        train(network, images, labels, Phase("network", "log-likelihood", ("backbone",), 5, batch_size=10), run)
        return network.backbone[0].weight.detach()

    expected = learn(Run(seed=1))
    assert not expected.is_contiguous() and expected.is_contiguous(memory_format=torch.channels_last)
    killed = Run(tmp_path / "run", seed=1, save_seconds=0.0)
    monkeypatch.setattr(killed, "save", lambda: Run.save(killed) or (killed.num_steps == stop_after and 1 / 0))
    with pytest.raises(ZeroDivisionError):
        learn(killed)
    assert torch.equal(learn(Run(tmp_path / "run", seed=1, resume=True)), expected)


def test_log_likelihood_training_learns(images, generator):
    labels = (images.mean((1, 2, 3)) > images.mean()).long()
    run = Run(None)
    network = build_network(AffineOrbit(learn=()), lambda: nn.Flatten(), Softmax(2), images, run.generator)
    train(network, images, labels, Phase("p", "log-likelihood", ("readout",), 300, learning_rate=0.05), run)
    assert (network.predict(images).argmax(1) == labels).float().mean() > 0.9


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        (Phase("p", "sample", ("bakcbone",), 1), "backbone"),
        (Phase("p", "log-likelihood", ("kernel",), 1), "sample, unbiased"),
    ],
)
def test_unknown_names_are_answered_with_the_valid_ones(images, labels, phase, message):
    with pytest.raises(InputError, match=message):
        train(gp(images), images, labels, phase, Run(None))


def test_the_papers_schedules():
    steps = [Schedule.steps.factor(step, 100) for step in (0, 49, 50, 74, 75, 99)]
    assert steps == [1, 1, 0.1, 0.1, 0.01, 0.01]
    cyclic = [Schedule.cyclic.factor(step, 100) for step in (0, 20, 40, 60, 80, 99)]
    assert cyclic == [0.01, 0.1, 1, 0.1, 0.01, 0.01]
    assert Schedule.cosine.factor(0, 10) == 1 and Schedule.cosine.factor(5, 10) == pytest.approx(0.5)
    assert {Schedule.constant.factor(step, 7) for step in range(7)} == {1.0}


def test_the_warm_cosine_rises_and_falls():
    factors = [Schedule.warm_cosine.factor(step, 100) for step in range(100)]
    assert factors[0] == 0 and factors[-1] < 0.001
    assert factors.index(max(factors)) == 5
    assert factors[50] == pytest.approx(0.5)


def test_weight_decay_shrinks_matrices_and_leaves_vectors(images, labels):
    parameters = {}
    for decay in (0.0, 0.5):
        run = Run(None, seed=5)
        network = build_network(AffineOrbit(), lambda: nn.Flatten(), Softmax(3), images, run.generator)
        start = network.readout.weight.detach().clone()
        # One step: gradients are the same, and decoupled decay multiplies weights by 1 − learning rate × decay.
        phase = Phase("p", "log-likelihood", ("readout",), 1, learning_rate=0.1, weight_decay=decay, batch_size=7)
        train(network, images, labels, phase, run)
        parameters[decay] = network.readout.weight.detach().clone(), network.readout.bias.detach().clone()
    torch.testing.assert_close(parameters[0.0][0] - parameters[0.5][0], 0.05 * start)
    torch.testing.assert_close(parameters[0.0][1], parameters[0.5][1], rtol=0, atol=0)


def test_the_natural_rate_follows_its_own_schedule(images, labels, monkeypatch):
    rates = []
    monkeypatch.setattr(trainer, "natural_gradient_step", lambda model, terms, *, rate, **_: rates.append(rate))
    phase = Phase(
        "p", "sample", ("kernel",), 4, natural_rate=0.2, natural_schedule=Schedule.cosine, batch_size=7, orbit_size=2
    )
    run, model = Run(None), gp(images)
    run.track("model", model)
    train(model, images, labels, phase, run)
    assert rates == pytest.approx([0.2 * Schedule.cosine.factor(step, 4) for step in range(4)])


def test_minibatches_are_epochs_without_replacement(generator):
    batches = Minibatches(10, 4, generator)
    drawn = [batches.next() for _ in range(10)]
    assert all(len(set(batch.tolist())) == 4 for batch in drawn)
    assert torch.cat(drawn).bincount(minlength=10).tolist() == [4] * 10


def test_a_batch_larger_than_the_data_is_the_data(generator):
    assert sorted(Minibatches(5, 64, generator).next().tolist()) == list(range(5))
