"""Does it tell the truth? Ranges are planted in upright digits, learned back, and compared with an oracle.

For every planted range and seed: the learned ranges and the accuracy of a network at them ("learn"); and the accuracy
of the same network at fixed half-widths of the planted parameters, judged by test labels ("oracle"). One JSON file per
row, so that the table can be filled over several sessions; rows that are there are not computed again.
"""

import json
import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from orbitune.backbones import MnistCNN
from orbitune.data import ImageDataset, load_dataset, plant_dataset
from orbitune.experiments.record import write_record
from orbitune.learners import CrossFit, PlainNetwork, Problem
from orbitune.likelihoods import Softmax
from orbitune.orbits import AffineOrbit, UniformOrbit
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
ORACLE_FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class PlantedConfig:
    """How many images, which rows, and how they are learned."""

    source: str = "mnist"
    num_train: int = 5000
    num_test: int = 10_000
    num_seeds: int = 3
    oracle: bool = True
    network: PlainNetwork = field(default_factory=lambda: PlainNetwork(epochs=12))
    learner: CrossFit = field(default_factory=CrossFit)
    predict_orbit_size: int = 16


def _smoke() -> PlantedConfig:
    network = PlainNetwork(epochs=0.5)
    learner = CrossFit(
        max_rounds=1, first_epochs=0.5, steps=2, warm_first=2, batch_size=8, orbit_size=2, num_inducing=10
    )
    return PlantedConfig("digits", 100, 100, 1, True, network, learner, 2)


BUDGETS = {"smoke": _smoke(), "laptop": PlantedConfig(), "paper": PlantedConfig(num_train=5000, num_seeds=10)}


def run(config: PlantedConfig, seed: int, out: Path) -> dict[str, Any]:
    """Fill in the rows that are missing under ``out/planted``, seed after seed, and gather all that are there."""
    folder = out / "planted"
    for row_seed in range(seed, seed + config.num_seeds):
        for name in PLANTED:
            path = folder / f"learn-{name}-seed{row_seed}.json"
            _row(path, config, row_seed, lambda data: _learn(config, data), name)
        for name in PLANTED if config.oracle else ():
            for factor in ORACLE_FACTORS:
                path = folder / f"oracle-{name}-x{factor:g}-seed{row_seed}.json"
                _row(path, config, row_seed, lambda data, n=name, f=factor: _oracle(config, data, n, f), name)
    return gather(folder)


def _row(path: Path, config: PlantedConfig, seed: int, compute: Any, name: str) -> None:
    if path.exists():
        return
    started = time.monotonic()
    generator = torch.Generator().manual_seed(seed)
    source = load_dataset(config.source).subset(config.num_train, generator, num_test=config.num_test)
    data = plant_dataset(source, {key: (-width, width) for key, width in PLANTED[name].items()}, generator)
    row = compute((data, Run(None, seed=seed)))
    row |= {"planted": name, "planted_half_widths": PLANTED[name], "seconds": time.monotonic() - started}
    write_record(path, "planted", asdict(config), seed, row)


def _learn(config: PlantedConfig, data: tuple[ImageDataset, Run]) -> dict[str, Any]:
    dataset, run = data
    orbit = AffineOrbit().reparameterised("log")
    problem = _problem(dataset, orbit)
    evidence = config.learner.learn_orbit(orbit, problem, run)
    orbit.requires_grad_(False)
    scores = _score(config, dataset, orbit, run)
    return {"kind": "learn", "ranges": orbit.ranges(), "elbo_per_datum": evidence, **scores}


def _oracle(config: PlantedConfig, data: tuple[ImageDataset, Run], name: str, factor: float) -> dict[str, Any]:
    dataset, run = data
    # Where nothing is planted, the scan is over rotation.
    widths = PLANTED[name] or {"rotation": math.pi / 4}
    orbit = AffineOrbit({key: (-factor * width, factor * width) for key, width in widths.items()}, learn=())
    return {"kind": "oracle", "factor": factor, "ranges": orbit.ranges(), **_score(config, dataset, orbit, run)}


def _problem(dataset: ImageDataset, orbit: UniformOrbit) -> Problem:
    likelihood = Softmax(dataset.num_classes)
    return Problem(
        dataset.images("train"),
        dataset.labels("train"),
        orbit,
        likelihood,
        lambda: MnistCNN(dataset.image_shape),
    )


def _score(config: PlantedConfig, dataset: ImageDataset, orbit: UniformOrbit, run: Run) -> dict[str, float]:
    """The same network at a fixed orbit, for both kinds of row: test accuracy of its orbit average."""
    network = config.network.train_network(_problem(dataset, orbit), orbit, run, "network")
    images, labels = dataset.images("test"), dataset.labels("test")
    return {"test_accuracy": accuracy(network, images, labels, config.predict_orbit_size, run.generator)}


def gather(folder: Path) -> dict[str, Any]:
    """All rows in a folder."""
    rows = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    return {"experiment": "planted", "rows": rows}


def table(record: dict[str, Any]) -> Table:
    """Learned against planted, and accuracy against the oracle's best."""
    shown = Table("planted", "seed", "learned half-width", "other ranges up to", "accuracy", "oracle's best")
    rows = record["rows"]
    for name, widths in PLANTED.items():
        for row in (r for r in rows if r["planted"] == name and r["kind"] == "learn"):
            learned = [f"{key} {(high - low) / 2:.2f}" for key, (low, high) in row["ranges"].items() if key in widths]
            other = max(max(-low, high) for key, (low, high) in row["ranges"].items() if key not in widths)
            same = [r for r in rows if r["kind"] == "oracle" and (r["planted"], r["seed"]) == (name, row["seed"])]
            oracle = [r["test_accuracy"] for r in same]
            shown.add_row(
                name,
                str(row["seed"]),
                ", ".join(learned) or "–",
                f"{other:.2f}",
                f"{row['test_accuracy']:.4f}",
                f"{max(oracle):.4f}" if oracle else "",
            )
    return shown
