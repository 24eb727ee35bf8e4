"""What cross-fitting promises: networks that follow the ranges, and weights that stand still while ranges move."""

import copy
from dataclasses import replace

import pytest
import torch

from orbitune.backbones import MLP
from orbitune.config import make_learner
from orbitune.errors import InputError, Interrupted
from orbitune.learners import CoordinateAscent, CrossFit, FixedRanges, Joint, Problem, crossfit
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.orbits import AffineOrbit
from orbitune.training import Run
from orbitune.training.trainer import measurements
from stopping import StopIn

LEARNER = replace(make_learner("crossfit", "smoke"), max_rounds=3, tolerance=0.0)


class Spy(Run):
    """Weights of the fold networks before and after every loop."""

    def __init__(self):
        super().__init__(None)
        self.moved: dict[str, bool] = {}
        self.networks: dict[str, torch.nn.Module] = {}

    def track(self, name, item):
        if name.startswith("network "):
            self.networks[name] = item
        super().track(name, item)

    def steps(self, name, total, **items):
        before = copy.deepcopy([list(n.backbone.parameters()) for n in self.networks.values()])
        yield from super().steps(name, total, **items)
        after = [list(n.backbone.parameters()) for n in self.networks.values()]
        self.moved[name] = any(
            not torch.equal(a, b) for old, new in zip(before, after, strict=True) for a, b in zip(old, new, strict=True)
        )


@pytest.fixture
def problem(generator):
    images = torch.rand(40, 1, 8, 8, generator=generator)
    return Problem(images, torch.arange(40) % 2, AffineOrbit(learn="rotation"), Softmax(2), lambda: MLP(64, (8,), 4))


def test_networks_adapt_in_every_round_and_stand_still_while_the_ranges_move(problem):
    run = Spy()
    LEARNER.learn(problem, run)
    rounds = {name: moved for name, moved in run.moved.items() if name.startswith("round")}
    assert len(rounds) == 3 * (2 + 2 + 1)
    assert rounds == {name: ": network" in name for name in rounds}


def test_what_the_user_has_frozen_stays_frozen(problem):
    def half_frozen():
        backbone = MLP(64, (8,), 4)
        weight = next(backbone.parameters()).requires_grad_(False)
        backbone.register_buffer("at_first", weight.clone())
        return backbone

    run = Spy()
    LEARNER.learn(Problem(problem.inputs, problem.targets, problem.orbit, Softmax(2), half_frozen), run)
    for network in run.networks.values():
        weight, *others = network.backbone.parameters()
        assert torch.equal(weight, network.backbone.at_first)
        assert [p.requires_grad for p in (weight, *others)] == [False] + [True] * len(others)


class Late(Run):
    """The time for the rounds is always up."""

    late = True


def test_rounds_that_were_ended_by_the_time_limit_stay_ended_on_resume(problem, tmp_path):
    stop = StopIn("network at fixed ranges")
    stop.run = Late(tmp_path, progress=stop)
    with pytest.raises(Interrupted):
        LEARNER.learn(copy.deepcopy(problem), stop.run)
    resumed = Run(tmp_path, resume=True)
    LEARNER.learn(problem, resumed)
    assert {line["round"] for line in resumed.history if line["phase"] == "evidence"} == {1}


@pytest.mark.parametrize("learner", [CrossFit, CoordinateAscent, Joint])
def test_an_orbit_without_halves_is_refused_before_anything_is_trained(problem, learner):
    run = Run(None)
    with pytest.raises(InputError, match="orbit_size must be even, got 3"):
        learner(orbit_size=3).learn(replace(problem, likelihood=Gaussian(2, labels=True)), run)
    assert run.num_steps == 0


def test_with_nothing_to_learn_no_bound_needs_halves(problem):
    still = replace(problem, orbit=AffineOrbit(learn=()), likelihood=Gaussian(2, labels=True))
    CrossFit(orbit_size=3).check(still)


def test_coordinates_that_contradict_the_orbit_s_are_refused(problem):
    orbit = AffineOrbit({"rotation": (-0.3, 0.3)}, learn="rotation", parameterisation="reciprocal")
    with pytest.raises(InputError, match=r"'reciprocal' .* in its own \('log'\)"):
        LEARNER.learn(replace(problem, orbit=orbit), Run(None))
    replace(LEARNER, coordinates="reciprocal").check(replace(problem, orbit=orbit))


@pytest.mark.parametrize("learner", [CrossFit, FixedRanges])
def test_a_rate_that_would_leave_the_posterior_at_the_prior_is_refused(learner):
    with pytest.raises(InputError, match="natural_rate must be more than 0 and at most 1, got 0"):
        learner(natural_rate=0.0)


def test_natural_gradients_do_not_overshoot():
    with pytest.raises(InputError, match=r"natural_rate must be at least 0 and at most 1, got 1\.5"):
        CoordinateAscent(natural_rate=1.5)
    assert CoordinateAscent(natural_rate=0.0).natural_rate == 0  # q(u) by Adam, as in the paper


def test_the_history_has_the_evidence_of_all_folds(problem, monkeypatch):
    measured = []
    monkeypatch.setattr(crossfit, "measurements", lambda terms: measured.append(measurements(terms)) or measured[-1])
    run = Run(None)
    LEARNER.learn_orbit(problem.orbit.reparameterised("log"), problem, run)
    lines = [line for line in run.history if line["phase"] == "evidence"]
    assert len(measured) == 2 * len(lines)
    for line, one, other in zip(lines, measured[::2], measured[1::2], strict=True):
        assert line["elbo"] == pytest.approx((one["elbo"] + other["elbo"]) / 2)
        assert line["elbo"] == pytest.approx(line["data_fit"] - line["kl"])
