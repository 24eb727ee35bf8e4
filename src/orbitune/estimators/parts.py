"""The parameters of an estimator, which are names, None or objects, as the parts of a problem."""

import copy
from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from orbitune.config import make_learner
from orbitune.errors import InputError
from orbitune.estimators.inputs import Rescale
from orbitune.learners import Learner
from orbitune.likelihoods import Likelihood
from orbitune.orbits import AffineOrbit, IdentityOrbit, Orbit
from orbitune.saving import BACKBONES, make_backbone

SMALLEST_SIDE = 4  # of images that the convolutional network can take


def orbit_of(orbit: Any, inputs: Tensor) -> Orbit:
    """A fresh orbit for inputs (N, …): None is all affine maps for images, and nothing for vectors."""
    images = inputs.ndim == 4
    if isinstance(orbit, Orbit):
        return copy.deepcopy(orbit).to(inputs.dtype)
    if orbit is None:
        return AffineOrbit() if images else IdentityOrbit()
    if not isinstance(orbit, Iterable):
        raise InputError(f"orbit must be None, names of affine parameters, or an Orbit; got {orbit!r}")
    if not images:
        raise InputError(
            f"orbit={orbit!r} names affine maps of images, but X holds vectors of {inputs.shape[1]} features. "
            "If these are flat images, say image_shape; else give an Orbit that acts on vectors"
        )
    return AffineOrbit(learn=orbit)


def backbone_maker(backbone: Any, inputs: Tensor) -> Callable[[], nn.Module]:
    """Makes fresh networks for inputs (N, …): by name, with inputs rescaled, or the user's own, as it is.

    None is the convolutional network for images (the fully connected one for very small images), and no network for
    vectors: the evidence of a GP on the vectors themselves is honest, that on a network's features is not (it has
    memorised the labels), and there is no orbit whose cross-fitting would make it so.
    """
    images = inputs.ndim == 4
    if backbone is None:
        backbone = "identity" if not images else "mnist-cnn" if min(inputs.shape[2:]) >= SMALLEST_SIDE else "mlp"
    if isinstance(backbone, nn.Module):
        return lambda: copy.deepcopy(backbone).to(inputs.dtype)
    if callable(backbone):
        return lambda: _checked_module(backbone()).to(inputs.dtype)
    if not images and backbone in BACKBONES and backbone not in ("mlp", "identity"):
        raise InputError(
            f"the backbone {backbone!r} is for images, but X holds vectors of {inputs.shape[1]} features. "
            "If these are flat images, say image_shape; else use 'mlp' or 'identity'"
        )
    channels, height, width = inputs.shape[1:] if images else (1, 1, inputs.shape[1])
    return lambda: nn.Sequential(Rescale(inputs), make_backbone(backbone, (channels, height, width))).to(inputs.dtype)


def learner_of(learner: Any, budget: Any) -> Learner:
    """A learner by name with the settings of a budget, or the user's own."""
    return learner if isinstance(learner, Learner) else make_learner(learner, budget)


def own_likelihood(likelihood: Likelihood, num_outputs: tuple[int, ...], what: str) -> Likelihood:
    """A copy of the user's likelihood, checked to have one of these numbers of outputs."""
    if likelihood.num_outputs not in num_outputs:
        raise InputError(
            f"{type(likelihood).__name__} has {likelihood.num_outputs} outputs, but {what}: "
            f"expected {' or '.join(str(num) for num in num_outputs)}"
        )
    return copy.deepcopy(likelihood)


def _checked_module(module: Any) -> nn.Module:
    if not isinstance(module, nn.Module):
        raise InputError(f"backbone must make an nn.Module, it made a {type(module).__name__}")
    return module
