"""What learning the invariance costs, as a multiple of training the plain network once, in the same process.

    ORBITUNE_DATA=… python benchmarks/learn.py --json results/benchmarks/learn.json

On rotated MNIST: the plain network (the paper's M1: 200 epochs, batch 200), the time until the rotation range passes
±2.7 rad, the time of the complete fit, and both accuracies on all test images. With --plain-epochs fewer than 200
the time of the plain network is extrapolated, which the result says, and its accuracy is that of the shorter training.
"""

import argparse
import json
import time
from dataclasses import asdict
from typing import Any

from orbitune.backbones import MnistCNN
from orbitune.data import load_dataset
from orbitune.learners import CrossFit, PlainNetwork, Problem
from orbitune.likelihoods import Softmax
from orbitune.machine import keep_freed_memory
from orbitune.orbits import AffineOrbit
from orbitune.provenance import commit, machine
from orbitune.training import Run
from orbitune.training.evaluation import accuracy
from orbitune.training.progress import Silent

PLAIN_EPOCHS = 200
ROTATION = 2.7


class RotationWatch(Silent):
    """When the rotation range first passes the mark on both sides."""

    def __init__(self) -> None:
        self.passed: float | None = None

    def show(self, values: dict[str, Any]) -> None:
        """Look at the ranges of a step."""
        low, high = values.get("ranges", {}).get("rotation", (0.0, 0.0))
        if self.passed is None and min(-low, high) > ROTATION:
            self.passed = time.perf_counter()


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain-epochs", type=float, default=PLAIN_EPOCHS)
    parser.add_argument("--num-test", type=int, default=50_000)
    parser.add_argument("--predict-orbit-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="file to write the result to")
    arguments = parser.parse_args()
    keep_freed_memory()
    data = load_dataset("rotated-mnist", seed=arguments.seed)
    images, labels = data.images("test")[: arguments.num_test], data.labels("test")[: arguments.num_test]

    def problem() -> Problem:
        train = data.images("train"), data.labels("train")
        return Problem(*train, AffineOrbit(), Softmax(data.num_classes), lambda: MnistCNN(data.image_shape))

    run = Run(None, seed=arguments.seed)
    plain = PlainNetwork(epochs=arguments.plain_epochs, batch_size=200)
    started = time.perf_counter()
    network = plain.learn(problem(), run).model
    plain_seconds = (time.perf_counter() - started) * PLAIN_EPOCHS / arguments.plain_epochs
    plain_accuracy = accuracy(network, images, labels, 1, run.generator)

    watch = RotationWatch()
    run = Run(None, seed=arguments.seed, progress=watch)
    learner = CrossFit()
    started = time.perf_counter()
    model = learner.learn(problem(), run).model
    fit_seconds = time.perf_counter() - started
    range_seconds = None if watch.passed is None else watch.passed - started
    result = {
        "plain_seconds": plain_seconds,
        "plain_seconds_extrapolated_from_epochs": arguments.plain_epochs,
        "plain_accuracy": plain_accuracy,
        "range_seconds": range_seconds,
        "range_multiple": None if range_seconds is None else range_seconds / plain_seconds,
        "fit_seconds": fit_seconds,
        "fit_multiple": fit_seconds / plain_seconds,
        "fit_accuracy": accuracy(model, images, labels, arguments.predict_orbit_size, run.generator),
        "ranges": model.orbit.ranges(),
        "num_test": len(images),
        "data": data.note or data.name,
        "config": {"plain": asdict(plain), "learner": asdict(learner)},
        "seed": arguments.seed,
        "commit": commit(),
        "machine": machine(),
    }
    print(json.dumps({key: value for key, value in result.items() if key != "config"}, indent=2))
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(result, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
