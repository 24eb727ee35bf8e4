"""The paper's scheme and its counter-examples on a small setting: 14 × 14 digits turned by any angle, a small network.

Coordinate ascent with fixed variances learns; joint training loses the signal; maximum likelihood collapses.
"""

import math

import pytest
import torch
from torch.nn.functional import avg_pool2d

from orbitune.backbones import MLP
from orbitune.data import load_dataset, plant_dataset
from orbitune.learners import CoordinateAscent, CrossFit, Joint, MaximumLikelihood, Problem
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.orbits import AffineOrbit
from orbitune.training import Run

pytestmark = pytest.mark.slow
SEEDS = (0, 1)


def learned_half_width(learner, likelihood, start, seed, num_train=1000):
    generator = torch.Generator().manual_seed(seed)
    digits = load_dataset("digits").subset(num_train, generator, num_test=10)
    digits = plant_dataset(digits, {"rotation": (-math.pi, math.pi)}, generator)
    problem = Problem(
        avg_pool2d(digits.images("train"), 2),
        digits.labels("train"),
        AffineOrbit({"rotation": (-start, start)}, learn="rotation"),
        likelihood,
        lambda: MLP(14 * 14, (200,), 50),
    )
    low, high = learner.learn(problem, Run(None, seed=seed)).model.orbit.ranges()["rotation"]
    return (high - low) / 2


def coordinate_ascent(pretrain_steps):
    return CoordinateAscent(
        pretrain_steps=pretrain_steps,
        cycles=1,
        gp_steps=150,
        gp_learning_rate=0.02,
        natural_rate=0.2,
        num_inducing=100,
        batch_size=100,
        orbit_size=8,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_coordinate_ascent_with_fixed_variances_learns(seed):
    assert learned_half_width(coordinate_ascent(30), Gaussian(10, labels=True), 0.05, seed) > 0.3


def test_coordinate_ascent_learns_nothing_once_the_network_has_memorised_the_data():
    assert learned_half_width(coordinate_ascent(400), Gaussian(10, labels=True), 0.05, 0) < 0.1


@pytest.mark.parametrize("seed", SEEDS)
def test_cross_fitting_learns_on_the_same_data_with_nothing_fixed(seed):
    learner = CrossFit(max_rounds=3, num_inducing=100, final=CrossFit().final)
    assert learned_half_width(learner, Softmax(10), 0.05, seed) > 1.5


@pytest.mark.parametrize("start", [0.05, 0.5])
def test_joint_training_loses_the_signal(start):
    learner = Joint(steps=300, learning_rate=0.005, num_inducing=100, batch_size=100, orbit_size=4)
    assert learned_half_width(learner, Softmax(10), start, seed=0) < 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_maximum_likelihood_collapses(seed):
    learner = MaximumLikelihood(steps=1000, learning_rate=0.005, batch_size=50, orbit_size=8)
    assert learned_half_width(learner, Softmax(10), 1.0, seed, num_train=200) < 0.2
