"""Folders deliver images class by class: what looks at some of the data must not look at the first of them."""

import torch

from builders import random_head, shallow_model
from orbitune.backbones import Identity
from orbitune.learners import Problem, base
from orbitune.learners.base import choose_inducing
from orbitune.likelihoods import Softmax
from orbitune.objectives import sample_elbo
from orbitune.orbits import IdentityOrbit
from orbitune.random import some_of
from orbitune.training.evaluation import mean_elbo


def test_some_are_all_where_there_are_few_and_random_ones_where_there_are_many(generator):
    assert some_of(5, 5, generator) == slice(None)
    chosen = some_of(1000, 50, generator)
    assert len(set(chosen.tolist())) == 50 and chosen.max() > 800


def test_inducing_inputs_are_chosen_among_all_classes(generator, monkeypatch):
    monkeypatch.setattr(base, "MAX_CANDIDATES", 30)
    inputs = torch.arange(3.0).repeat_interleave(100).unsqueeze(1) + 0.01 * torch.rand(300, 1, generator=generator)
    problem = Problem(inputs, torch.arange(300) // 100, IdentityOrbit(), Softmax(3), Identity)
    Z = choose_inducing(Identity(), inputs, 3, problem, generator)["Z"]
    assert sorted(Z.round().flatten().tolist()) == [0, 1, 2]


def test_the_evidence_is_that_of_all_classes(generator):
    model = shallow_model(IdentityOrbit(), Softmax(3), random_head(generator))
    inputs = torch.randn(300, 2, generator=generator, dtype=torch.float64)
    targets = torch.arange(300) // 100
    every = mean_elbo(model, inputs, targets, 1, torch.Generator().manual_seed(1), max_inputs=300)
    some = mean_elbo(model, inputs, targets, 1, torch.Generator().manual_seed(1), max_inputs=100)
    first = sample_elbo(model, inputs[:100], targets[:100], num_data=300, orbit_size=1, generator=generator)
    assert abs(some - every) < abs(first.per_datum.item() - every)
