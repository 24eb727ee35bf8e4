"""What learning the invariance costs, as a multiple of training the plain network once, in the same process.

    ORBITUNE_DATA=… python benchmarks/learn.py --json results/benchmarks/learn.json

On rotated MNIST: the plain network (the paper's M1: 200 epochs, batch 200); then row M8 or M9 of ``orbitune reproduce
rotmnist``, which aims at the paper's accuracy: the time until the rotation range passes ±2.7 rad, the time of the
complete fit with the prediction of all test images, and its accuracy. The row is written to --out as that command
would write it. With --plain-epochs fewer than 200 the time of the plain network is extrapolated, which the result says.
"""

import argparse
import time
from pathlib import Path

from orbitune.backbones import MnistCNN
from orbitune.data import load_dataset
from orbitune.experiments.experiment import Row
from orbitune.experiments.fits import DATA_SEED
from orbitune.experiments.records import read_rows
from orbitune.experiments.rotmnist import EXPERIMENT, PAPER
from orbitune.experiments.rows import reproduce
from orbitune.learners import PlainNetwork, Problem
from orbitune.likelihoods import Softmax
from orbitune.machine import keep_freed_memory
from orbitune.orbits import IdentityOrbit
from orbitune.provenance import commit, machine, write_json
from orbitune.training import Run

PLAIN_EPOCHS = 200
ROTATION = 2.7


def plain_network_seconds(epochs: float, seed: int) -> float:
    """The time of the paper's M1, measured on the first ``epochs`` of its 200."""
    data = load_dataset("rotated-mnist", seed=DATA_SEED)
    train = data.stored("train"), data.labels("train")
    problem = Problem(*train, IdentityOrbit(), Softmax(data.num_classes), lambda: MnistCNN(data.image_shape))
    started = time.perf_counter()
    PlainNetwork(epochs=epochs, batch_size=200).learn(problem, Run(None, seed=seed))
    return (time.perf_counter() - started) * PLAIN_EPOCHS / epochs


def range_seconds(row: Row) -> float | None:
    """When the rotation range first passed the mark on both sides."""
    over_time = row["ranges_over_time"]
    moments = zip(over_time["seconds"], over_time["rotation"]["low"], over_time["rotation"]["high"], strict=True)
    return next((seconds for seconds, low, high in moments if min(-low, high) > ROTATION), None)


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--row", choices=("M8", "M9"), default="M9")
    parser.add_argument("--plain-epochs", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of results that gets the row")
    parser.add_argument("--work", type=Path, help="folder for checkpoints of the row")
    parser.add_argument("--json", type=Path, help="file to write the result to")
    arguments = parser.parse_args()
    wanted = (arguments.row, arguments.seed)
    if any((row["model"], row["seed"]) == wanted for row in read_rows(EXPERIMENT, arguments.out)):
        parser.error(f"{arguments.out} has row {arguments.row}, seed {arguments.seed}, already: give another --out")
    keep_freed_memory()
    commit()  # of now, for the record
    plain = plain_network_seconds(arguments.plain_epochs, arguments.seed)
    print(f"plain network, {PLAIN_EPOCHS} epochs: {plain:.0f} s (measured on {arguments.plain_epochs:g})", flush=True)
    reproduce(EXPERIMENT, "laptop", arguments.out, rows=[arguments.row], seeds=[arguments.seed], work=arguments.work)
    (row,) = (r for r in read_rows(EXPERIMENT, arguments.out) if (r["model"], r["seed"]) == wanted)
    until_range = range_seconds(row)
    result = {
        "row": arguments.row,
        "seed": arguments.seed,
        "plain_seconds": plain,
        "plain_seconds_measured_on_epochs": arguments.plain_epochs,
        "range_seconds": until_range,
        "range_multiple": None if until_range is None else until_range / plain,
        "fit_seconds": row["seconds"],
        "fit_multiple": row["seconds"] / plain,
        "fit_accuracy": row["test_accuracy"],
        "paper_accuracy": PAPER[arguments.row],
        "ranges": row["ranges"],
        "config": row["config"],
        "commit": commit(),
        "machine": machine(),
    }
    for key in ("range_seconds", "range_multiple", "fit_seconds", "fit_multiple", "fit_accuracy", "paper_accuracy"):
        print(f"{key}: {result[key]:.4g}" if result[key] is not None else f"{key}: never")
    if arguments.json:
        write_json(arguments.json, result)


if __name__ == "__main__":
    main()
