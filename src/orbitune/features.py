"""From inputs to features: the only place where a network runs."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitune.errors import InputError
from orbitune.inputs import Inputs
from orbitune.orbits import Orbit
from orbitune.random import permutation
from orbitune.recomputation import in_bounded_memory

MAX_POINTS = 2**10
"""Orbit points up to which the network is called once for all of them where gradients are needed."""

MAX_PIECE_POINTS = 2**9
"""Orbit points per call where there are more, or no gradients: few enough for activations to stay in the cache."""


def features_of_points(
    orbit: Orbit,
    backbone: nn.Module,
    inputs: Float[Tensor, "B *event"],
    params: Float[Tensor, "B S P"],
    backward_points: int | None = None,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "B S D"]:
    """Features of the S points that parameters ν lead to from each input.

    With ``backward_points`` = k < S only k randomly chosen points are back-propagated through, and their gradients
    count S/k times. Given the points, Σ_{i∈k} (S/k) ∂F/∂h_i · dh_i is an unbiased estimate of Σ_i ∂F/∂h_i · dh_i; the
    values are those of all points in either case.
    """
    size = params.shape[1]
    if not torch.is_grad_enabled() or backward_points is None or backward_points >= size:
        return _in_pieces(orbit, backbone, inputs, params)
    if backward_points < 1:
        raise InputError(f"backward_points must be at least 1, got {backward_points}")
    order = permutation(size, generator, params.device)
    chosen, others = order[:backward_points], order[backward_points:]
    with torch.no_grad():
        without = _in_pieces(orbit, backbone, inputs, params[:, others])
    with_gradient = _in_pieces(orbit, backbone, inputs, params[:, chosen])
    if with_gradient.requires_grad:
        with_gradient.register_hook(lambda gradient: gradient * (size / backward_points))
    return torch.cat((with_gradient, without), dim=1)[:, order.argsort()]


def _in_pieces(
    orbit: Orbit, backbone: nn.Module, inputs: Float[Tensor, "B *event"], params: Float[Tensor, "B S P"]
) -> Float[Tensor, "B S D"]:
    """Warp and network for a few points per input at a time, so that memory does not grow with S beyond a bound."""
    device = inputs.device.type

    def piece(params: Tensor) -> Tensor:
        points = orbit.transform(inputs, params)  # (B, s, …)
        # Weights are cast once per piece, and not only in the first: what is computed again must be the same.
        dtype, enabled = torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)
        with torch.autocast(device, dtype, enabled, cache_enabled=False):
            return extract_features(backbone, points.flatten(0, 1)).unflatten(0, points.shape[:2])

    batch, size = params.shape[:2]
    parts = params.split(max(1, MAX_PIECE_POINTS // batch), dim=1)
    sources = (inputs, params, *orbit.parameters(), *backbone.parameters())
    if not torch.is_grad_enabled() or not any(source.requires_grad for source in sources):
        return torch.cat([piece(part) for part in parts], dim=1)
    if batch * size <= MAX_POINTS:
        return piece(params)
    return torch.cat(in_bounded_memory(piece, parts, backbone), dim=1)


def extract_features(backbone: nn.Module, inputs: Float[Tensor, "N *event"]) -> Float[Tensor, "N D"]:
    """The backbone's feature vectors, checked to be vectors."""
    features = backbone(inputs)
    if features.ndim != 2 or features.shape[0] != inputs.shape[0]:
        raise InputError(
            f"the backbone must map inputs {tuple(inputs.shape)} to one feature vector each, (N, D); "
            f"{type(backbone).__name__} returned {tuple(features.shape)}. Add nn.Flatten() or pooling at its end"
        )
    return features


@contextmanager
def evaluating(module: nn.Module) -> Generator[None]:
    """The module in evaluation mode (no dropout, fixed batch statistics), and afterwards every part as it was."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def frozen(*modules: nn.Module) -> Generator[None]:
    """No gradients for the modules' parameters, and afterwards for those that had them before."""
    free = [p for module in modules for p in module.parameters() if p.requires_grad]
    for parameter in free:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in free:
            parameter.requires_grad_(True)


def chunks_of(inputs: Inputs, orbit_size: int = 1, max_points: int = 2**11) -> Iterable[Tensor]:
    """Pieces of the inputs, of at most ``max_points`` orbit points: memory does not grow with their number."""
    return inputs.split(max(1, max_points // max(1, orbit_size)))


def check_inputs(inputs: Tensor) -> None:
    """Floating-point, at least one input with at least one axis of its own, and finite."""
    if inputs.ndim < 2 or inputs.shape[0] == 0:
        raise InputError(f"inputs must have shape (B ≥ 1, …), got {tuple(inputs.shape)}")
    if not inputs.is_floating_point():
        raise InputError(f"inputs must be floating-point, got {inputs.dtype}; for images use images.float() / 255")
    if not inputs.isfinite().all():
        bad = int((~inputs.isfinite()).flatten(1).any(1).sum())
        raise InputError(f"{bad} of {inputs.shape[0]} inputs contain NaN or infinite values")
