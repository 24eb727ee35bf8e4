"""The time left of a run, by a clock that we turn."""

import pytest
import torch

from orbitune.backbones import MLP
from orbitune.learners import AugmentedNetwork, CrossFit, FixedRanges, PlainNetwork, Problem
from orbitune.likelihoods import Softmax
from orbitune.orbits import AffineOrbit
from orbitune.training import PlannedLoop, Run, Silent, TimeLeft


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def take(left, clock, name, steps, seconds, first=0):
    left.start(name, first)
    for step in range(first, steps):
        clock.now += seconds
        left.advance(step + 1)


def test_every_kind_of_step_counts_at_its_own_pace(clock):
    left = TimeLeft(clock)
    left.plan(
        [PlannedLoop("a1", 10, "a"), PlannedLoop("b1", 5, "b"), PlannedLoop("a2", 10, "a"), PlannedLoop("b2", 5, "b")]
    )
    take(left, clock, "a1", 10, 2.0)
    assert left.seconds() is None and left.words() == ""  # nothing is known about b
    clock.now += 100  # what happens between loops is no step
    take(left, clock, "b1", 1, 6.0)
    assert left.seconds() == pytest.approx(4 * 6 + 10 * 2 + 5 * 6)
    take(left, clock, "a2", 4, 5.0)  # slower than before: 40 s for 14 steps
    assert left.seconds() == pytest.approx(6 * 40 / 14 + 5 * 6)
    assert left.words() == "at most 1 min left"


def test_what_was_left_out_is_not_waited_for(clock):
    left = TimeLeft(clock)
    left.plan([PlannedLoop(f"round {r}", 10, "round") for r in range(5)] + [PlannedLoop("final", 10, "final")])
    take(left, clock, "round 0", 10, 1.0)
    assert left.seconds() == pytest.approx(40)  # the last kind is not known, and not waited for
    take(left, clock, "final", 5, 1.0)
    assert left.seconds() == pytest.approx(5) and left.words() == "less than a minute left"


def test_a_loop_that_goes_on_counts_what_is_left_of_it(clock):
    left = TimeLeft(clock)
    left.plan([PlannedLoop("a", 100, "a")])
    take(left, clock, "a", 60, 2.0, first=50)
    assert left.seconds() == pytest.approx(80)
    left.start("nobody planned this", 0)
    left.advance(1)
    assert left.seconds() is None


def test_another_plan_may_have_slower_steps_of_the_same_kind(clock):
    left = TimeLeft(clock)
    left.plan([PlannedLoop("a", 10, "a")])
    take(left, clock, "a", 10, 60.0)
    left.plan([PlannedLoop("b", 10, "a")])
    take(left, clock, "b", 1, 1.0)
    assert left.seconds() == pytest.approx(9)


def test_hours(clock):
    left = TimeLeft(clock)
    left.plan([PlannedLoop("a", 10_000, "a")])
    take(left, clock, "a", 1, 3.6)
    assert left.words() == "at most 10 h left"


class Loops(Silent):
    def __init__(self):
        self.started, self.planned = [], []

    def plan(self, loops):
        self.planned = list(loops)

    def start(self, phase, total, first):
        self.started.append((phase, total))


NETWORK = PlainNetwork(epochs=1.0)
LEARNERS = [
    NETWORK,
    AugmentedNetwork(NETWORK),
    FixedRanges(NETWORK, head_steps=2, num_inducing=5, orbit_size=2),
    FixedRanges(NETWORK, head_steps=2, num_inducing=5, orbit_size=2, elbo_steps=2),
    CrossFit(
        max_rounds=2,
        first_epochs=0.3,
        epochs=0.2,
        steps=2,
        warm_first=3,
        warm=2,
        orbit_size=2,
        num_inducing=5,
        final=FixedRanges(NETWORK, head_steps=2, num_inducing=5, orbit_size=2),
    ),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_plans_are_kept(learner):
    generator = torch.Generator().manual_seed(0)
    images, labels = torch.rand(21, 1, 6, 5, generator=generator), torch.arange(21) % 2
    progress = Loops()
    run = Run(None, seed=0, progress=progress)
    with run.active():
        run.plan(learner.plan(len(images)))
        learner.learn(Problem(images, labels, AffineOrbit(learn=["rotation"]), Softmax(2), lambda: MLP(30)), run)
    assert [(loop.name, loop.steps) for loop in progress.planned] == progress.started
