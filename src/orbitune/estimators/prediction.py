"""Predictions that are a function of the input alone: not of its neighbours, their order or their number."""

from collections.abc import Callable
from contextlib import nullcontext

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.gp import OrbitMarginal
from orbitune.model import InvariantGP, chunks_of, evaluating, extract_features
from orbitune.network import OrbitNetwork


@torch.no_grad()
def predict_each(
    model: InvariantGP | OrbitNetwork,
    inputs: Float[Tensor, "N *event"],
    orbit_size: int,
    seed: int,
    summarise: Callable[[OrbitMarginal, torch.Generator], Tensor],
) -> Float[Tensor, "N *summary"]:
    """What ``summarise`` makes of the law of f̂ at each input, which it gets chunk by chunk, with a generator.

    All inputs undergo the same S transformations, and every chunk sees the same random numbers.
    """
    summaries = []
    still = model.head.standing_still() if isinstance(model, InvariantGP) else nullcontext()
    with evaluating(model.backbone), still:
        for chunk in chunks_of(inputs, orbit_size):
            generator = torch.Generator().manual_seed(seed)
            params = model.orbit.sample_params(1, orbit_size, generator).expand(len(chunk), -1, -1)  # (B, S, P)
            points = model.orbit.transform(chunk, params)  # (B, S, …)
            features = extract_features(model.backbone, points.flatten(0, 1)).unflatten(0, points.shape[:2])
            summaries.append(summarise(_law(model, features), generator))
    return torch.cat(summaries)


def _law(model: InvariantGP | OrbitNetwork, features: Float[Tensor, "B S D"]) -> OrbitMarginal:
    """The law of f̂; a network is sure of it, so the variance is zero."""
    if isinstance(model, InvariantGP):
        return model.head.marginal(features, model.head.law())
    mean = model.readout(features).mean(1)  # (B, C)
    return OrbitMarginal(mean, torch.zeros_like(mean), mean.new_zeros(len(mean), 0))
