"""Does it tell the truth? Ranges are planted in upright digits, learned back, and compared with an oracle.

For every planted range: the learned ranges and the accuracy of a network at them ("learn"); and the best accuracy of
the same network at fixed half-widths of the planted parameters, judged by test labels ("oracle").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from matplotlib.figure import Figure

from orbitune.backbones import MnistCNN
from orbitune.data import ImageDataset, load_dataset, plant_dataset
from orbitune.experiments.experiment import Budget, Experiment, Metric, Row, Task, accuracy_metric
from orbitune.learners import CrossFit, PlainNetwork, Problem
from orbitune.likelihoods import Softmax
from orbitune.orbits import AffineOrbit, Orbit
from orbitune.training import Run
from orbitune.training.evaluation import accuracy

# Half-widths of what is planted. Scales are planted in both axes, independently.
PLANTED: dict[str, dict[str, float]] = {
    "nothing": {},
    "rotation-45": {"rotation": math.pi / 4},
    "rotation-90": {"rotation": math.pi / 2},
    "rotation-180": {"rotation": math.pi},
    "translation": {"translate_x": 0.25},
    "scale": {"log_scale_x": math.log(1.5), "log_scale_y": math.log(1.5)},
}
KINDS = {"learn": "learned", "oracle": "best fixed half-width, judged by test labels"}


@dataclass(frozen=True)
class PlantedConfig:
    """What is planted in how many images, and how it is learned; ``oracle_factors`` are multiples of the truth."""

    kind: str = "learn"
    planted: str = "nothing"
    source: str = "mnist"
    num_train: int = 5000
    num_test: int = 10_000
    oracle_factors: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0)
    network: PlainNetwork = field(default_factory=lambda: PlainNetwork(epochs=12.0))
    learner: CrossFit = field(default_factory=CrossFit)
    predict_orbit_size: int = 8


def _budget(num_seeds: int, config: PlantedConfig) -> Budget:
    rows = {f"{kind}-{name}": replace(config, kind=kind, planted=name) for name in PLANTED for kind in KINDS}
    return Budget(num_seeds, rows)


def compute(task: Task) -> Row:
    """Plant, then learn or consult the oracle."""
    config: PlantedConfig = task.config
    generator = torch.Generator().manual_seed(task.seed)
    source = load_dataset(config.source).subset(config.num_train, generator, num_test=config.num_test)
    widths = PLANTED[config.planted]
    data = plant_dataset(source, {key: (-width, width) for key, width in widths.items()}, generator)
    run = task.open_run()
    with run.active():
        result = (_learn if config.kind == "learn" else _oracle)(config, data, run)
        return {**result, "planted": widths, "data": data.name, "note": data.note, "seconds": run.seconds}


def _learn(config: PlantedConfig, data: ImageDataset, run: Run) -> Row:
    orbit = AffineOrbit().reparameterised(config.learner.coordinates)
    evidence = config.learner.learn_orbit(orbit, _problem(data, orbit), run)
    orbit.requires_grad_(False)
    score = _score(config, data, orbit, run, "network")
    ranges = orbit.ranges()
    planted = PLANTED[config.planted]
    learned = [(ranges[name][1] - ranges[name][0]) / 2 for name in planted]
    return {
        "ranges": ranges,
        "elbo_per_datum": evidence,
        "test_accuracy": score,
        "planted_half_width": max(planted.values(), default=0.0),
        "learned_half_width": sum(learned) / len(learned) if learned else None,
        "other_ranges_up_to": max(max(-low, high) for name, (low, high) in ranges.items() if name not in planted),
    }


def _oracle(config: PlantedConfig, data: ImageDataset, run: Run) -> Row:
    # Where nothing is planted, the scan is over rotation.
    widths = PLANTED[config.planted] or {"rotation": math.pi / 4}
    accuracies = []
    for factor in config.oracle_factors:
        orbit = AffineOrbit({key: (-factor * width, factor * width) for key, width in widths.items()}, learn=())
        accuracies.append(_score(config, data, orbit, run, f"network at {factor:g} × planted"))
    best = max(range(len(accuracies)), key=accuracies.__getitem__)
    half_width = config.oracle_factors[best] * max(widths.values())
    return {
        "test_accuracy": accuracies[best],
        "planted_half_width": max(PLANTED[config.planted].values(), default=0.0),
        "learned_half_width": half_width,
        "accuracy_by_factor": dict(zip(map(str, config.oracle_factors), accuracies, strict=True)),
    }


def _problem(data: ImageDataset, orbit: Orbit) -> Problem:
    make_backbone = partial(MnistCNN, data.image_shape)
    return Problem(data.images("train"), data.labels("train"), orbit, Softmax(data.num_classes), make_backbone)


def _score(config: PlantedConfig, data: ImageDataset, orbit: Orbit, run: Run, name: str) -> float:
    """The same network at a fixed orbit, for both kinds of row: test accuracy of its orbit average."""
    network = config.network.train_network(_problem(data, orbit), orbit, run, name)
    images, labels = data.images("test"), data.labels("test")
    score = run.once(
        f"accuracy of {name}", lambda: accuracy(network, images, labels, config.predict_orbit_size, run.generator)
    )
    run.untrack(name)
    return score


def figure(records: Sequence[Row]) -> Figure:
    """Learned against planted half-width, with the oracle's choice."""
    drawn = Figure(figsize=(5, 4), layout="constrained")
    axis = drawn.subplots()
    for kind, marker in (("learn", "o"), ("oracle", "x")):
        rows = [r for r in records if r["model"].startswith(kind) and r["learned_half_width"] is not None]
        planted, learned = [r["planted_half_width"] for r in rows], [r["learned_half_width"] for r in rows]
        axis.plot(planted, learned, marker, mfc="none", label=KINDS[kind])
    axis.plot((0, math.pi), (0, math.pi), ":", color="0.6")
    axis.set(xlabel="planted half-width", ylabel="half-width found")
    axis.legend(fontsize=8, frameon=False)
    return drawn


_SMOKE = PlantedConfig(
    source="digits",
    num_train=60,
    num_test=50,
    oracle_factors=(0.0, 1.0),
    network=PlainNetwork(epochs=0.5),
    learner=CrossFit(
        max_rounds=1, first_epochs=0.5, steps=2, warm_first=2, batch_size=8, orbit_size=2, num_inducing=10
    ),
    predict_orbit_size=2,
)

EXPERIMENT = Experiment(
    name="planted",
    title="Planted ranges (not in the paper)",
    question="Are ranges that we put into upright digits learned back, and is the accuracy that of an oracle?",
    rows={f"{kind}-{name}": f"{name}: {text}" for name in PLANTED for kind, text in KINDS.items()},
    budgets={"smoke": _budget(1, _SMOKE), "laptop": _budget(3, PlantedConfig()), "paper": _budget(10, PlantedConfig())},
    compute=compute,
    figure=figure,
    metrics=(
        Metric("planted_half_width", "planted half-width", digits=2),
        Metric("learned_half_width", "half-width found", digits=2),
        Metric("other_ranges_up_to", "other ranges up to", digits=2),
        accuracy_metric(),
    ),
    differences=("This experiment is ours. Half-widths are in the units of the parameter, averaged over axes.",),
)
