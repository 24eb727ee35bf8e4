"""Scores of a trained model."""

import torch
from torch import Tensor

from orbitune.features import evaluating
from orbitune.inputs import Inputs
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.objectives import sample_elbo
from orbitune.orbits import IdentityOrbit
from orbitune.random import some_of


def class_probabilities(
    model: InvariantGP | OrbitNetwork, inputs: Inputs, orbit_size: int, generator: torch.Generator
) -> Tensor:
    """The probability of every class, (N, C)."""
    return both_classes(model.predict(inputs, orbit_size, generator=generator))


def both_classes(probabilities: Tensor) -> Tensor:
    """(N, 1) is the probability of the second of two classes: give that of both. (N, C) stays."""
    return torch.cat((1 - probabilities, probabilities), dim=-1) if probabilities.shape[-1] == 1 else probabilities


def without_orbit(model: InvariantGP | OrbitNetwork) -> InvariantGP | OrbitNetwork:
    """The same network, last layer and likelihood, looking once at each input as it is."""
    if isinstance(model, InvariantGP):
        return InvariantGP(IdentityOrbit(), model.backbone, model.head, model.likelihood)
    return OrbitNetwork(IdentityOrbit(), model.backbone, model.readout, model.likelihood)


def share_correct(probabilities: Tensor, labels: Tensor) -> float:
    """The share of labels that the most probable class gets right."""
    return (probabilities.argmax(-1) == labels.to(probabilities.device)).double().mean().item()


def accuracy(
    model: InvariantGP | OrbitNetwork, inputs: Inputs, labels: Tensor, orbit_size: int, generator: torch.Generator
) -> float:
    """The share of labels that the most probable class gets right."""
    return share_correct(class_probabilities(model, inputs, orbit_size, generator), labels)


@torch.no_grad()
def mean_elbo(
    model: InvariantGP,
    inputs: Inputs,
    targets: Tensor,
    orbit_size: int,
    generator: torch.Generator,
    max_inputs: int = 1000,
) -> float:
    """The sample bound per datum, estimated on (at most ``max_inputs``, at random, of) the training data."""
    num_data = len(inputs)
    chosen = some_of(num_data, max_inputs, generator)
    chunks = zip(inputs[chosen].split(100), targets[chosen].split(100), strict=True)
    with evaluating(model.backbone), model.head.standing_still():
        terms = [
            sample_elbo(model, x, y, num_data=num_data, orbit_size=orbit_size, generator=generator) for x, y in chunks
        ]
    data_fit = sum(term.data_fit.item() * len(term.targets) for term in terms) / sum(len(t.targets) for t in terms)
    return (data_fit - terms[0].kl.item()) / num_data
