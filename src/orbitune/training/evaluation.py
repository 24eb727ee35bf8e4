"""Scores of a trained model."""

import torch
from torch import Tensor

from orbitune.features import evaluating
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.objectives import sample_elbo


def accuracy(
    model: InvariantGP | OrbitNetwork, inputs: Tensor, labels: Tensor, orbit_size: int, generator: torch.Generator
) -> float:
    """The share of labels that the most probable class gets right."""
    predicted = model.predict(inputs, orbit_size, generator=generator).argmax(-1)
    return (predicted == labels.to(predicted.device)).double().mean().item()


@torch.no_grad()
def mean_elbo(
    model: InvariantGP,
    inputs: Tensor,
    targets: Tensor,
    orbit_size: int,
    generator: torch.Generator,
    max_inputs: int = 1000,
) -> float:
    """The sample bound per datum, estimated on (the first ``max_inputs`` of) the training data."""
    num_data = len(inputs)
    chunks = zip(inputs[:max_inputs].split(100), targets[:max_inputs].split(100), strict=True)
    with evaluating(model.backbone):
        terms = [
            sample_elbo(model, x, y, num_data=num_data, orbit_size=orbit_size, generator=generator) for x, y in chunks
        ]
    data_fit = sum(term.data_fit.item() * len(term.targets) for term in terms) / sum(len(t.targets) for t in terms)
    return (data_fit - terms[0].kl.item()) / num_data
