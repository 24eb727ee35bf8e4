"""Paper, Sec. 6.1: seconds per training iteration under the three bounds, at the same sizes, in one run."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from matplotlib.figure import Figure

from orbitune.backbones import MnistCNN
from orbitune.data import load_dataset
from orbitune.experiments.experiment import Budget, Experiment, Metric, Row, Task
from orbitune.experiments.fits import DATA_SEED
from orbitune.likelihoods import Gaussian, Likelihood, Softmax
from orbitune.machine import has_bfloat16_units
from orbitune.model import InvariantGP, build_model
from orbitune.network import build_network
from orbitune.objectives import natural_gradient_step, sample_elbo, unbiased_elbo
from orbitune.orbits import AffineOrbit

PAPER = {"gaussian_unbiased": 2.64, "gaussian_sample": 1.32, "softmax_sample": 1.13}
LABELS = {
    "gaussian_unbiased": "Gaussian, unbiased bound",
    "gaussian_sample": "Gaussian, sample bound",
    "softmax_sample": "Softmax, sample bound",
}


@dataclass(frozen=True)
class TimingConfig:
    """Sizes of a step, and how often it is timed."""

    data: str
    batch_size: int
    orbit_size: int
    num_inducing: int
    iterations: int


def compute(task: Task) -> Row:
    """The three steps in turn, so that a busy machine slows all of them alike; medians, without the first round."""
    config: TimingConfig = task.config
    generator = torch.Generator().manual_seed(task.seed)
    data = load_dataset(config.data, seed=DATA_SEED)
    images, labels = data.images("train", slice(config.batch_size)), data.labels("train", slice(config.batch_size))
    candidates = data.images("train", slice(3 * config.num_inducing))

    def step_of(likelihood: Likelihood, bound: Callable) -> Callable[[], None]:
        network = build_network(AffineOrbit(), MnistCNN, likelihood, images, generator)
        model = build_model(
            network.orbit,
            network.backbone,
            likelihood,
            candidates,
            num_inducing=config.num_inducing,
            generator=generator,
        )
        return lambda: training_step(model, bound, images, labels, config.orbit_size, generator)

    steps = {
        "gaussian_unbiased": step_of(Gaussian(data.num_classes, labels=True), unbiased_elbo),
        "gaussian_sample": step_of(Gaussian(data.num_classes, labels=True), sample_elbo),
        "softmax_sample": step_of(Softmax(data.num_classes), sample_elbo),
    }
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    task.progress.start("timing", config.iterations, 0)
    for iteration in range(config.iterations + 1):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - started)
        task.progress.advance(iteration)
    task.progress.finish()
    task.progress.close()
    return {name: median(times[1:]) for name, times in seconds.items()} | {"all": seconds, "data": data.name}


def training_step(
    model: InvariantGP,
    bound: Callable,
    images: torch.Tensor,
    labels: torch.Tensor,
    orbit_size: int,
    generator: torch.Generator,
) -> None:
    """One iteration of everything: bound, gradient of all parameters, natural gradient of q(u)."""
    model.zero_grad()
    with torch.autocast(images.device.type, torch.bfloat16, enabled=has_bfloat16_units(images.device)):  # as in a run
        terms = bound(model, images, labels, num_data=len(images), orbit_size=orbit_size, generator=generator)
    terms.loss.backward()
    natural_gradient_step(model, terms, rate=0.1, generator=generator)


def figure(records: Sequence[Row]) -> Figure:
    """Ours beside the paper's, each relative to its own unbiased bound: the machines differ."""
    drawn = Figure(figsize=(6, 2.6), layout="constrained")
    axis = drawn.subplots()
    for index, name in enumerate(PAPER):
        ours = [record[name] / record["gaussian_unbiased"] for record in records]
        axis.plot(ours, [index] * len(ours), "o", color="C0", label="ours" if index == 0 else None)
        paper = PAPER[name] / PAPER["gaussian_unbiased"]
        axis.plot(paper, index, "o", mfc="none", ms=8, color="C3", label="paper" if index == 0 else None)
    axis.set(yticks=range(len(PAPER)), yticklabels=list(LABELS.values()), xlim=(0, None))
    axis.set_xlabel("time per iteration, relative to the unbiased bound")
    axis.legend(fontsize=8, frameon=False)
    return drawn


def findings(records: Sequence[Row]) -> list[str]:
    """The ratio that the paper has at 2.3."""

    def ratio(seconds: Mapping[str, Any]) -> float:
        return seconds["gaussian_unbiased"] / seconds["softmax_sample"]

    return [
        f"Seed {record['seed']}: the unbiased Gaussian bound takes {ratio(record):.2f} times as long as the Softmax "
        f"bound (paper: {ratio(PAPER):.1f})."
        for record in records
    ]


EXPERIMENT = Experiment(
    name="timing",
    title="Time per iteration (Sec. 6.1)",
    question="What does a training iteration cost under the unbiased Gaussian bound and under the sample bound?",
    rows={"one-run": "all three in one run"},
    budgets={
        "smoke": Budget(1, {"one-run": TimingConfig("rotated-digits", 10, 2, 10, 2)}),
        "laptop": Budget(1, {"one-run": TimingConfig("rotated-mnist", 200, 120, 1200, 5)}),
        "paper": Budget(1, {"one-run": TimingConfig("rotated-mnist", 200, 120, 1200, 20)}),
    },
    compute=compute,
    figure=figure,
    findings=findings,
    metrics=tuple(
        Metric(name, f"{label} [s]", {"one-run": seconds}, 2)
        for (name, label), seconds in zip(LABELS.items(), PAPER.values(), strict=True)
    ),
    differences=(
        "The paper's times are of a Titan X; ours, at the same sizes (200 images, 120 orbit points, 1,200 inducing "
        "inputs), of the processor named below. Only ratios can be compared.",
        "Our unbiased bound splits one orbit into halves, so it costs one network pass like the sample bound; the "
        "paper's costs two.",
    ),
)
