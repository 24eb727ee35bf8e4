"""Paper, Fig. 3: joint training maps all images of a class to the same features, whatever their orientation."""

import math
from collections.abc import Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from orbitune.config import FitConfig, OrbitConfig
from orbitune.data import load_dataset
from orbitune.data.dataset import balanced_choice
from orbitune.experiments.experiment import Budget, Experiment, Metric, Row, Task, accuracy_metric
from orbitune.experiments.fits import DATA_SEED, compute_fit, fit_config
from orbitune.experiments.rotmnist import NO_ORBIT, SMOKE_DATA
from orbitune.learners import Joint, PlainNetwork
from orbitune.model import extract_features
from orbitune.orbits import AffineOrbit
from orbitune.saving import load_model

NUM_ANGLES = 16
SHOWN = 12  # images of the figure


def _rows(joint: Joint, network: PlainNetwork, **options: object) -> dict[str, FitConfig]:
    return {
        "joint": fit_config(joint, orbit=OrbitConfig(), likelihood="gaussian", **options),
        "pretrained": fit_config(network, orbit=NO_ORBIT, **options),
    }


def compute(task: Task) -> Row:
    """Train, then measure how far features of training images spread."""
    row = compute_fit(task)
    model, _ = load_model(task.work)
    data = load_dataset(task.config.data, seed=DATA_SEED)
    generator = torch.Generator().manual_seed(task.seed)
    chosen = balanced_choice(data.y_train, 20 * data.num_classes, data.num_classes, data.name, generator)
    images, labels = data.images("train", chosen), data.labels("train", chosen)
    return row | spreads(model.backbone, images, labels)


@torch.no_grad()
def spreads(backbone: nn.Module, images: Tensor, labels: Tensor) -> Row:
    """Shares of the features' total variance: within classes, and over the orientation of one image.

    total = E‖h − E h‖² over images and angles; orientation_spread = E_images Var_angles(h) / total;
    within_class_spread = E_classes Var(h of the images as they are) / Var(h of the images as they are).
    """
    angles = torch.arange(NUM_ANGLES) * (2 * math.pi / NUM_ANGLES)
    params = torch.zeros(len(images), NUM_ANGLES, len(AffineOrbit.names))
    params[..., AffineOrbit.names.index("rotation")] = angles
    turned = AffineOrbit(learn=()).transform(images, params)  # (N, A, Ch, H, W)
    H = torch.stack([extract_features(backbone, points) for points in turned])  # (N, A, D)
    total = variance(H.flatten(0, 1))
    over_angles = torch.stack([variance(h) for h in H]).mean()
    h = H[:, 0]  # angle zero: the images as they are
    within = torch.stack([variance(h[labels == label]) for label in labels.unique()]).mean()
    first = h[labels == labels[0]][:SHOWN]
    return {
        "orientation_spread": (over_angles / total).item(),
        "within_class_spread": (within / variance(h)).item(),
        "embeddings": [[round(value, 3) for value in features] for features in first.tolist()],
    }


def variance(h: Tensor) -> Tensor:
    """E‖h − E h‖² over the rows of (N, D)."""
    return (h - h.mean(0)).square().sum(-1).mean()


def figure(records: Sequence[Row]) -> Figure:
    """Features of differently oriented training images of one class: a line per image, a column per feature."""
    shown = {record["model"]: record for record in reversed(records)}
    drawn = Figure(figsize=(8, 1 + 1.6 * len(shown)), layout="constrained")
    axes = drawn.subplots(len(shown), 1, squeeze=False)[:, 0]
    for axis, (name, record) in zip(axes, sorted(shown.items()), strict=True):
        axis.imshow(
            record["embeddings"], aspect="auto", cmap="viridis"
        )  # features of two networks have no common scale
        axis.set(yticks=[], xlabel="feature", ylabel="image")
        axis.set_title(f"{name}: within-class spread {record['within_class_spread']:.2f}", fontsize=9)
    return drawn


EXPERIMENT = Experiment(
    name="embeddings",
    title="Embeddings after joint training and after pre-training (Fig. 3)",
    question="Does joint training make features of a class so alike that no signal is left to learn an orbit from?",
    rows={"joint": "joint training of network, GP and orbit", "pretrained": "network trained by log-likelihood"},
    budgets={
        "smoke": Budget(
            1,
            _rows(
                Joint(pretrain_steps=2, steps=2, num_inducing=10, batch_size=10, orbit_size=2),
                PlainNetwork(epochs=0.5),
                **SMOKE_DATA,
            ),
        ),
        "laptop": Budget(
            1,
            _rows(
                Joint(steps=2500, natural_rate=0.1, batch_size=100, orbit_size=4),
                PlainNetwork(epochs=35.0),
                data="rotated-mnist",
                predict_orbit_size=16,
            ),
        ),
        "paper": Budget(
            3,
            _rows(
                Joint(steps=60_000, num_inducing=1200, orbit_size=120),
                PlainNetwork(epochs=200.0),
                data="rotated-mnist",
            ),
        ),
    },
    compute=compute,
    figure=figure,
    metrics=(
        Metric("within_class_spread", "variance within classes / total", digits=3),
        Metric("orientation_spread", "variance over orientation / total", digits=3),
        Metric("rotation_half_width", "rotation, half-width", digits=2),
        accuracy_metric(),
    ),
    differences=(
        "The paper shows pictures of embeddings; the two numbers are ours. They are of training images: the spread "
        "among images of one class, and that of one image turned through 16 angles.",
        "Joint training starts after 200 steps of the network alone: from fresh weights the features outrun the "
        "inducing inputs and nothing is learned at all. It has the Gaussian likelihood and natural gradients for q(u), "
        "the network alone has Softmax.",
    ),
)
