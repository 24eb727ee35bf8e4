"""A trained model on disk: its weights as safetensors, and what it takes to rebuild it around them."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from orbitune.backbones import MLP, Identity, MnistCNN, PcamNet, ResNet18
from orbitune.config import OrbitConfig, from_mapping
from orbitune.errors import CheckpointError, InputError, unknown_name
from orbitune.gp import CholeskyPosterior, GPHead, NaturalPosterior
from orbitune.learners.base import squared_exponential
from orbitune.likelihoods import Bernoulli, Gaussian, Likelihood, Softmax
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.orbits import AffineOrbit, IdentityOrbit, Orbit
from orbitune.orbits.ranges import KINDS
from orbitune.training import load_state, save_state

BACKBONES = (
    "mnist-cnn",
    "pcam",
    "resnet18",
    "resnet18-narrow",
    "resnet18-strided",
    "resnet18-strided-narrow",
    "mlp",
    "identity",
)
WEIGHTS, STRUCTURE = "model.safetensors", "model.json"


@dataclass(frozen=True)
class Structure:
    """What the weights do not say.

    Attributes:
        image_shape: (channels, height, width).
        class_names: names of the labels 0 … C−1.
        orbit: None for a model without one.
        num_inducing: None for a network without a GP.
        natural: whether q(u) is in natural parameters.
    """

    image_shape: tuple[int, int, int]
    class_names: tuple[str, ...]
    likelihood: str
    backbone: str
    orbit: OrbitConfig | None
    num_features: int
    num_inducing: int | None
    natural: bool = True

    def check_shape(self, image_shape: tuple[int, ...]) -> None:
        """Raise if images (Ch, H, W) are not of the shape the model was trained on."""
        if image_shape != self.image_shape:
            raise InputError(f"the model was trained on images of shape {self.image_shape}, these have {image_shape}")


def make_orbit(config: OrbitConfig) -> Orbit:
    """The affine orbit of a configuration; the identity where nothing is learned and no range is given."""
    if config.learn == () and not config.ranges:
        return IdentityOrbit()
    return AffineOrbit(
        config.ranges,
        learn=config.learn,
        start=config.start,
        symmetric=config.symmetric,
        parameterisation=config.parameterisation,
        padding=config.padding,
    )


def make_likelihood(name: str, num_classes: int) -> Likelihood:
    """A likelihood of class labels, by name."""
    match name:
        case "softmax":
            return Softmax(num_classes)
        case "gaussian":
            return Gaussian(num_classes, labels=True)
        case "bernoulli":
            if num_classes != 2:
                raise InputError(
                    f"the Bernoulli likelihood is for two classes, the data have {num_classes}: use softmax"
                )
            return Bernoulli()
        case _:
            raise unknown_name("likelihood", name, ("softmax", "gaussian", "bernoulli"))


def make_backbone(name: str, image_shape: tuple[int, int, int]) -> torch.nn.Module:
    """A fresh network for images of a shape, by name."""
    channels, height, width = image_shape
    match name:
        case "mnist-cnn":
            return MnistCNN(image_shape)
        case "pcam":
            return PcamNet(image_shape)
        case "resnet18":
            return ResNet18(channels)
        case "resnet18-narrow":
            return ResNet18(channels, width=16)
        case "resnet18-strided":
            return ResNet18(channels, strided=True)
        case "resnet18-strided-narrow":
            return ResNet18(channels, width=32, strided=True)
        case "mlp":
            return MLP(channels * height * width)
        case "identity":
            return Identity()
        case _:
            raise unknown_name("backbone", name, BACKBONES)


def save_model(
    directory: Path,
    model: InvariantGP | OrbitNetwork,
    *,
    image_shape: tuple[int, int, int],
    class_names: tuple[str, ...],
    likelihood: str,
    backbone: str,
) -> None:
    """Write weights and structure into a directory."""
    orbit = None
    if isinstance(model.orbit, AffineOrbit):
        learned = tuple(model.orbit.names[i] for i in model.orbit.learned_index.tolist())
        kind = next((k for k, cls in KINDS.items() if isinstance(model.orbit.learned, cls)), "direct")
        symmetric = model.orbit.learned is not None and model.orbit.learned.symmetric
        orbit = OrbitConfig(learned, model.orbit.ranges(), 0.05, symmetric, kind, model.orbit.padding)
    gp = isinstance(model, InvariantGP)
    structure = Structure(
        image_shape,
        class_names,
        likelihood,
        backbone,
        orbit,
        num_features=model.head.Z.shape[1] if gp else model.readout.in_features,
        num_inducing=model.head.Z.shape[0] if gp else None,
        natural=gp and isinstance(model.head.posterior, NaturalPosterior),
    )
    save_state(directory / WEIGHTS, model.state_dict())
    unfinished = directory / (STRUCTURE + ".tmp")
    unfinished.write_text(json.dumps(asdict(structure), indent=2) + "\n")
    os.replace(unfinished, directory / STRUCTURE)


def load_model(directory: Path) -> tuple[InvariantGP | OrbitNetwork, Structure]:
    """Rebuild the model of a finished run, ready to predict."""
    try:
        values = json.loads((directory / STRUCTURE).read_text())
    except FileNotFoundError as error:
        raise CheckpointError(
            f"{directory} holds no finished model ({STRUCTURE} is missing). "
            "Either it is not the directory of a run, or the run is unfinished: resume it"
        ) from error
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{directory / STRUCTURE} is damaged: {error}") from error
    structure = from_mapping(Structure, values, str(directory / STRUCTURE))
    orbit: Orbit = IdentityOrbit() if structure.orbit is None else make_orbit(structure.orbit)
    backbone = make_backbone(structure.backbone, structure.image_shape)
    likelihood = make_likelihood(structure.likelihood, len(structure.class_names))
    if structure.num_inducing is None:
        readout = torch.nn.Linear(structure.num_features, likelihood.num_outputs)
        model: InvariantGP | OrbitNetwork = OrbitNetwork(orbit, backbone, readout, likelihood)
    else:
        Z = torch.zeros(structure.num_inducing, structure.num_features, dtype=torch.float64)
        make_posterior = NaturalPosterior if structure.natural else CholeskyPosterior
        posterior = make_posterior(len(Z), likelihood.num_outputs, shared_covariance=likelihood.shared_curvature)
        head = GPHead(squared_exponential(Z.shape[1], 1.0, 1.0), Z, posterior)
        model = InvariantGP(orbit, backbone, head, likelihood.to(Z))
    model.load_state_dict(load_state(directory / WEIGHTS))
    return model.eval(), structure
