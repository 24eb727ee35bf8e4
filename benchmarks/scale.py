"""How time and memory grow: of a fit with N; of a step with S, M, C and the image size; of a prediction with its sizes.

    python benchmarks/scale.py --json results/benchmarks/scale.json --plot results/benchmarks/scale.png

Every point runs in a fresh process. A fit is one round of cross-fitting at few steps on N generated images, whose cost
per image does not depend on what is on them; a step is a GP step of the Softmax bound; a prediction is of 2,000 images
(``predicted orbit``) or at 4 orbit points (``predicted images``).
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from step import GROUPS, Stopwatch
from torch import Tensor

import orbitune
from orbitune.backbones import MnistCNN
from orbitune.learners import CrossFit, Problem
from orbitune.likelihoods import Softmax
from orbitune.machine import keep_freed_memory
from orbitune.orbits import AffineOrbit
from orbitune.provenance import commit, machine
from orbitune.training import Phase, Run, train

DEFAULT = {"B": 50, "S": 16, "M": 200, "C": 10, "side": 28}
PART = 4
SWEEPS = {
    "N": (1000, 4000, 15_000, 60_000),
    "S": (4, 16, 64, 256, 1024, 2048),
    f"S, {PART} points back": (4, 16, 64, 256, 1024, 2048),
    "M": (100, 400, 1600),
    "C": (2, 10, 100),
    "side": (14, 28, 56, 112),
    "predicted orbit": (1, 4, 16, 64),
    "predicted images": (1000, 4000, 16_000),
}


def measure(name: str, value: int) -> dict:
    """One point of one sweep."""
    keep_freed_memory()
    match name:
        case "N":
            seconds = _fit_seconds(value)
        case "predicted orbit":
            seconds = _prediction_seconds(2000, value)
        case "predicted images":
            seconds = _prediction_seconds(value, 4)
        case "S" | "M" | "C" | "side":
            seconds = _step_seconds({**DEFAULT, name: value})
        case _:
            seconds = _step_seconds({**DEFAULT, "S": value}, PART)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    return {"swept": name, "value": value, "seconds": seconds, "peak_gb": peak}


def _fit_seconds(num: int) -> float:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(num, 1, 28, 28, generator=generator)
    labels = torch.arange(num) % 10
    problem = Problem(images, labels, AffineOrbit(), Softmax(10), MnistCNN)
    learner = CrossFit(max_rounds=1, first_epochs=1.0, steps=5, warm_first=5)
    started = time.perf_counter()
    learner.learn_orbit(AffineOrbit().reparameterised("log"), problem, Run(None))
    return time.perf_counter() - started


def _step_seconds(size: dict[str, int], backward_points: int | None = None, repeats: int = 3) -> float:
    model, images, labels = _model_and_data(size, 2 * size["B"])
    stopwatch = Stopwatch()
    run = Run(None, progress=stopwatch)
    run.track("model", model)
    phase = Phase(
        "gp",
        "sample",
        GROUPS["gp"],
        repeats + 1,
        natural_rate=0.1,
        batch_size=size["B"],
        orbit_size=size["S"],
        backward_points=backward_points,
    )
    train(model, images, labels, phase, run)
    return statistics.median(stopwatch.seconds[1:])  # the first step warms up


def _prediction_seconds(num: int, orbit_size: int) -> float:
    model, images, _ = _model_and_data(DEFAULT, num)
    model.predict(images[:100], orbit_size)  # warms up
    started = time.perf_counter()
    model.predict(images[:num], orbit_size)
    return time.perf_counter() - started


def _model_and_data(size: dict[str, int], num: int) -> tuple[orbitune.InvariantGP, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(max(num, size["M"]), 1, size["side"], size["side"], generator=generator)
    labels = torch.randint(size["C"], (len(images),), generator=generator)
    backbone = MnistCNN((1, size["side"], size["side"])).to(memory_format=torch.channels_last)
    model = orbitune.build_model(
        AffineOrbit(),
        backbone,
        Softmax(size["C"]),
        images[: max(size["M"], 100)],
        num_inducing=size["M"],
        inducing="random",
        generator=generator,
    )
    return model, images, labels


def plot(rows: list[dict], path: Path) -> None:
    """Seconds and memory against each swept number, on logarithmic axes that the columns share."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.4 * len(SWEEPS), 5), layout="constrained")
    axes = figure.subplots(2, len(SWEEPS), squeeze=False, sharex="col", sharey="row")
    for column, name in enumerate(SWEEPS):
        points = [row for row in rows if row["swept"] == name]
        for axis, key in zip(axes[:, column], ("seconds", "peak_gb"), strict=True):
            axis.loglog([p["value"] for p in points], [p[key] for p in points], "o-")
            axis.grid(alpha=0.3)
            axis.xaxis.set_minor_formatter("")
        axes[1, column].set_xlabel(name)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("peak memory [GB]")
    figure.savefig(path, dpi=80)


def main() -> None:
    """Measure all points, or (--point, for the fresh processes) one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="file to write the rows to")
    parser.add_argument("--plot", type=Path, help="file to draw them to")
    parser.add_argument("--sweeps", nargs="+", choices=SWEEPS, help="which numbers to sweep; all of them unless given")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.point:
        print(json.dumps(measure(*json.loads(arguments.point))))
        return
    commit()  # of now, for the record
    rows = []
    for name in arguments.sweeps or SWEEPS:
        for value in SWEEPS[name]:
            command = [sys.executable, __file__, "--point", json.dumps([name, value])]
            row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            rows.append(row)
            print(f"{name:>16} = {value:6}: {row['seconds']:8.3f} s  {row['peak_gb']:6.2f} GB", flush=True)
    if arguments.json:
        result = {"default": DEFAULT, "rows": rows, "commit": commit(), "machine": machine()}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    main()
