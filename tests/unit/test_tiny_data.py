"""Learners on less data than their defaults have in mind, and with less time."""

import math

import pytest
import torch

from orbitune.backbones import MLP
from orbitune.config import make_learner
from orbitune.errors import InputError
from orbitune.learners import LEARNERS, CrossFit, FixedRanges, PlainNetwork, Problem
from orbitune.learners.base import steps_of
from orbitune.learners.rounds import RoundSummary
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.orbits import AffineOrbit, IdentityOrbit
from orbitune.training import Run, Schedule, run


def problem_of(num, likelihood=None, orbit=None):
    generator = torch.Generator().manual_seed(num)
    images = torch.rand(num, 1, 4, 4, generator=generator)
    targets = torch.arange(num) % 2 if likelihood is None else torch.randn(num, generator=generator)
    return Problem(
        images, targets, orbit or AffineOrbit(), likelihood or Softmax(2), lambda: MLP(16, hidden=(), num_features=3)
    )


@pytest.mark.parametrize("num", [2, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_learns_from_two_or_three_images(name, num):
    problem = problem_of(num)
    outcome = make_learner(name, "smoke").learn(problem, Run())
    probabilities = outcome.model.predict(problem.inputs, 2, generator=torch.Generator().manual_seed(0))
    assert probabilities.shape == (num, 2) and probabilities.isfinite().all()
    assert outcome.elbo_per_datum is None or math.isfinite(outcome.elbo_per_datum)


@pytest.mark.parametrize("name", ["crossfit", "coordinate", "joint", "fixed"])
def test_numbers_too(name):
    problem = problem_of(3, Gaussian())
    outcome = make_learner(name, "smoke").learn(problem, Run())
    assert outcome.model.predict(problem.inputs, 2, generator=torch.Generator().manual_seed(0)).isfinite().all()


def test_more_folds_than_images_leave_one_image_out_at_a_time():
    learner = CrossFit(**{**vars(make_learner("crossfit", "smoke")), "folds": 10, "max_rounds": 1})
    run = Run()
    learner.learn(problem_of(3), run)
    networks = {line["phase"] for line in run.history if "network" in line["phase"]}
    assert networks == {f"round 1: network {k}" for k in (1, 2, 3)} | {"network at fixed ranges"}


@pytest.mark.parametrize("orbit", [IdentityOrbit(), AffineOrbit(learn=())], ids=["identity", "nothing learned"])
def test_without_a_range_to_learn_cross_fitting_is_its_final_stage(orbit):
    learner = make_learner("crossfit", "smoke")
    crossfit = learner.learn(problem_of(6, orbit=orbit), Run())
    fixed = learner.final.learn(problem_of(6, orbit=orbit), Run())
    assert crossfit.elbo_per_datum == fixed.elbo_per_datum
    states = crossfit.model.state_dict(), fixed.model.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])


def test_a_backbone_without_weights_is_not_trained():
    run = Run()
    problem = Problem(torch.rand(4, 3), torch.arange(4) % 2, IdentityOrbit(), Softmax(2), torch.nn.Flatten)
    FixedRanges(head_steps=2, num_inducing=2).learn(problem, run)
    assert {line["phase"] for line in run.history} == {"GP at fixed ranges"}


def test_an_epoch_of_few_images_counts_as_ten_minibatches():
    assert steps_of(15.0, 2500, 100) == 375
    assert steps_of(15.0, 30, 100) == steps_of(15.0, 999, 100) == 150
    assert steps_of(0.01, 30, 100) == 1


def test_unknown_learners_and_budgets_are_answered_with_the_known_ones():
    with pytest.raises(InputError, match="crossfit"):
        make_learner("magic", "laptop")
    with pytest.raises(InputError, match="laptop"):
        make_learner("crossfit", "weekend")


class Clock:
    """A second passes whenever somebody looks."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        self.now += 1
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(run, "time", clock)
    return clock


@pytest.mark.parametrize("name", LEARNERS)
def test_under_a_time_limit_every_learner_ends_early_with_a_usable_model(name, clock):
    problem, limit = problem_of(20), 150
    limited = Run(time_limit=float(limit))
    outcome = make_learner(name, "laptop").learn(problem, limited)
    # A step takes several looks at the clock: without the limit, all of these would take longer.
    assert limit / 2 < limited.seconds < 1.5 * limit
    assert outcome.model.predict(problem.inputs, 2, generator=torch.Generator().manual_seed(0)).isfinite().all()


def test_no_time_at_all_is_one_step_of_everything(clock):
    hurried = Run(time_limit=1e-6)
    CrossFit(max_rounds=3).learn(problem_of(6), hurried)
    phases = [line["phase"] for line in hurried.history if "ranges" in line]
    assert len(phases) == len(set(phases)) and {"evidence", "GP at fixed ranges"} < set(phases)


def test_a_schedule_finishes_although_the_phase_is_cut_short(clock, monkeypatch):
    believed = []
    monkeypatch.setattr(Schedule, "factor", lambda self, step, total: believed.append(step / total) or 1.0)
    PlainNetwork(epochs=1000.0).learn(problem_of(6), Run(time_limit=100.0))
    assert len(believed) < 100
    assert believed == sorted(believed) and believed[0] < 0.1 and believed[-1] > 0.9


def test_a_round_cut_short_is_summed_up_by_its_last_step():
    summary, orbit = RoundSummary(), AffineOrbit(learn=["rotation"])
    for bound, average in ((0.1, False), (0.2, False), (0.3, True), (0.5, True)):
        orbit.set_ranges({"rotation": (-bound, bound)})
        summary.add(orbit, bound, average=average)
        last = summary.elbo if not average else None
        assert last in (None, bound)
    assert summary.elbo == pytest.approx(0.4) and summary.bounds[1] == pytest.approx(0.4)
