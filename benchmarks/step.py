"""Time and peak memory of one GP step and one network step, beside the bare cost of the network.

    python benchmarks/step.py --size paper --json results/benchmarks/step.json
    python benchmarks/step.py --size sweep --repeats 2 --json sweep.json --plot sweep.png
    python benchmarks/step.py --size paper --points part --profile profile.txt

Every row runs in a fresh process, so that its peak memory is its own, and measures the network alone on as many images
after every step: on another machine, or at another time of day, compare ratios. Steps are those of the training loop.
"""

import argparse
import copy
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import torch
from torch import Tensor, nn

import orbitune
from orbitune.backbones import MnistCNN
from orbitune.learners.base import objective_of
from orbitune.likelihoods import Gaussian, Softmax
from orbitune.machine import keep_freed_memory
from orbitune.orbits import AffineOrbit
from orbitune.provenance import commit, machine
from orbitune.training import Phase, Run, train
from orbitune.training.progress import Silent

BOUNDS = ("gaussian-unbiased", "gaussian-sample", "softmax-sample")
GROUPS = {"gp": ("orbit", "kernel", "inducing", "likelihood"), "network": ("backbone",)}


@dataclass(frozen=True)
class Size:
    """B, S, M, and how many of the S points are back-propagated through (None is all)."""

    batch: int
    orbit: int
    inducing: int
    backward_points: int | None = None


SMALL, PAPER = Size(100, 16, 200), Size(200, 120, 1200)
SIZES = {
    "small": [SMALL, Size(100, 16, 200, 2)],
    "paper": [PAPER, Size(200, 120, 1200, 12)],
    "sweep": [
        SMALL,
        *(Size(b, 16, 200) for b in (25, 50, 200, 400)),
        *(Size(100, s, 200) for s in (4, 8, 32, 64, 128, 256)),
        *(Size(100, 16, m) for m in (50, 100, 400, 800, 1600)),
    ],
}


WARM_UP = 2
"""Steps that are not timed. The peak memory is theirs: later, the bare network runs in the same process."""


class Stopwatch(Silent):
    """How long each step took; after those that warm up, ``between`` runs after every step, off the clock."""

    def __init__(self, between: Callable[[], object] = lambda: None) -> None:
        self.between = between
        self.seconds: list[float] = []
        self.peak_gb = 0.0

    def start(self, phase: str, total: int, first: int) -> None:
        """The first step begins."""
        self.started = time.perf_counter()

    def advance(self, step: int) -> None:
        """A step is done, and the next begins when the network alone has been measured."""
        self.seconds.append(time.perf_counter() - self.started)
        if len(self.seconds) == WARM_UP:
            self.peak_gb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        if len(self.seconds) >= WARM_UP:
            self.between()
        self.started = time.perf_counter()


class BareNetwork:
    """The network alone, on as many images as a step has points, in pieces of the best size.

    That size is found by the first pass of a kind, which warms up; the passes after it are timed once, as steps are.
    """

    def __init__(self, backbone: nn.Module, points: Tensor, num_points: int):
        self.backbone, self.points, self.num_points = backbone, points, num_points
        self.forward_backward_seconds: list[float] = []
        self.piece: int | None = None

    def time_forward_backward(self) -> None:
        """Once more; the first is not counted."""

        def run(part: Tensor) -> None:
            self.backbone(part).sum().backward()

        if self.piece is None:
            self.piece = self._best_piece(run)
        else:
            self.forward_backward_seconds.append(self._time(run, self.piece))

    @torch.no_grad()
    def forward_seconds(self, repeats: int) -> float:
        """The median of several passes."""
        piece = self._best_piece(self.backbone)
        return statistics.median(self._time(self.backbone, piece) for _ in range(repeats))

    def _best_piece(self, run: Callable[[Tensor], object]) -> int:
        return min((512, len(self.points)), key=lambda piece: self._time(run, piece))

    def _time(self, run: Callable[[Tensor], object], piece: int) -> float:
        started = time.perf_counter()
        for first in range(0, self.num_points, piece):
            run(self.points[: min(piece, self.num_points - first)])
        return time.perf_counter() - started


def measure(
    bound: str, phase_name: str, size: Size, repeats: int, profile: torch.profiler.profile | None = None
) -> dict:
    """One row."""
    keep_freed_memory()
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(max(2 * size.inducing, 2 * size.batch), 1, 28, 28, generator=generator)
    labels = torch.randint(10, (len(images),), generator=generator)
    likelihood = Softmax(10) if bound == "softmax-sample" else Gaussian(10, labels=True)
    orbit = AffineOrbit({"rotation": (-1.0, 1.0)})
    backbone = MnistCNN().to(memory_format=torch.channels_last)
    model = orbitune.build_model(
        orbit,
        backbone,
        likelihood,
        images,
        num_inducing=size.inducing,
        inducing="random",
        generator=generator,
    )
    phase = Phase(
        phase_name,
        "sample" if bound.endswith("sample") else objective_of(likelihood),
        GROUPS[phase_name],
        repeats + WARM_UP,
        natural_rate=0.1 if phase_name == "gp" else 0.0,
        batch_size=size.batch,
        orbit_size=size.orbit,
        backward_points=size.backward_points,
    )
    num_points = size.batch * size.orbit
    points = orbit(images[: min(size.batch, 1600 // size.orbit)], size.orbit, generator).detach().flatten(0, 1)
    bare = BareNetwork(copy.deepcopy(backbone), points, num_points)
    run = Run(None)
    precision = run.network_precision(points.device)
    run.progress = stopwatch = Stopwatch() if profile else Stopwatch(precision(bare.time_forward_backward))
    run.track("model", model)
    with profile or nullcontext():
        train(model, images, labels, phase, run)
    if profile:
        return {}
    seconds, both = stopwatch.seconds[WARM_UP:], bare.forward_backward_seconds
    with precision:
        forward = bare.forward_seconds(repeats)
    return {
        "bound": bound,
        "phase": phase_name,
        **asdict(size),
        "seconds": statistics.median(seconds),
        "spread": max(seconds) - min(seconds),
        "peak_gb": stopwatch.peak_gb,
        "bare_forward_seconds": forward,
        "bare_forward_backward_seconds": statistics.median(both),
        "ratio_to_forward_backward": statistics.median(s / b for s, b in zip(seconds, both, strict=True)),
    }


def main() -> None:
    """Measure all rows of a size, or (--row, for the fresh processes) one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--points", choices=("all", "part", "both"), default="both", help="which are back-propagated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", help="file to write the rows to")
    parser.add_argument("--plot", help="file to draw a sweep to")
    parser.add_argument("--profile", help="file to write a profile of the first size to, instead of timing")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        bound, phase, size = json.loads(arguments.row)
        print(json.dumps(measure(bound, phase, Size(**size), arguments.repeats)))
        return
    if arguments.profile:
        size = SIZES[arguments.size][arguments.points == "part"]
        write_profile(size, arguments.profile)
        return
    commit()  # of now, for the record
    rows = []
    bounds = BOUNDS if arguments.size != "sweep" else BOUNDS[-1:]
    print(
        f"{'bound':18} {'phase':8} {'B':>4} {'S':>4} {'M':>5} {'back':>5}  seconds   peak GB  × bare forward+backward"
    )
    for size in SIZES[arguments.size]:
        if arguments.points not in ("both", "all" if size.backward_points is None else "part"):
            continue
        for bound in bounds:
            for phase in GROUPS:
                row = _in_fresh_process(bound, phase, size, arguments.repeats)
                rows.append(row)
                _write(arguments, rows)
                print(
                    f"{bound:18} {phase:8} {size.batch:4} {size.orbit:4} {size.inducing:5} "
                    f"{size.backward_points or 'all':>5}  {row['seconds']:7.3f}   {row['peak_gb']:7.2f}  "
                    f"{row['ratio_to_forward_backward']:.2f}",
                    flush=True,
                )
    if arguments.plot:
        plot_sweep(rows, arguments.plot)


def write_profile(size: Size, path: str) -> None:
    """Where the time of a Softmax GP step goes, by operation; three steps, of which two warm up."""
    profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
    measure(BOUNDS[-1], "gp", size, 1, profile)
    averages = profile.key_averages()
    total = sum(event.self_cpu_time_total for event in averages)
    averages = sorted(averages, key=lambda event: -event.self_cpu_time_total)[:20]
    lines = [f"{event.self_cpu_time_total / total:6.1%}  {event.count:6} × {event.key}" for event in averages]
    with open(path, "w") as file:
        file.write("\n".join([f"{size}, commit {commit()}", *lines]) + "\n")


def plot_sweep(rows: list[dict], path: str) -> None:
    """Seconds against B·S and M, and memory against S, of steps and of the bare network."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    by_points, by_inducing, memory = figure.subplots(1, 3)
    for phase, marker in zip(GROUPS, "os", strict=True):
        own = [row for row in rows if row["phase"] == phase]
        swept = sorted((row for row in own if row["inducing"] == SMALL.inducing), key=lambda row: _points(row))
        by_points.loglog([_points(row) for row in swept], [row["seconds"] for row in swept], marker + "-", label=phase)
        same_points = [row for row in own if _points(row) == SMALL.batch * SMALL.orbit]
        same_points.sort(key=lambda row: row["inducing"])
        by_inducing.loglog([r["inducing"] for r in same_points], [r["seconds"] for r in same_points], marker + "-")
        same_batch = [row for row in swept if row["batch"] == SMALL.batch]
        memory.semilogx([row["orbit"] for row in same_batch], [row["peak_gb"] for row in same_batch], marker + "-")
    points, bare = [_points(row) for row in swept], [row["bare_forward_backward_seconds"] for row in swept]
    by_points.loglog(points, bare, "k:", label="bare forward + backward")
    by_points.set(xlabel="orbit points per step, B·S", ylabel="seconds per step")
    by_points.legend()
    by_inducing.set(xlabel="inducing inputs M", ylabel="seconds per step", ylim=by_points.get_ylim())
    memory.set(xlabel=f"orbit size S (B = {SMALL.batch})", ylabel="peak memory [GB]", ylim=(0, None))
    for axis in (by_points, by_inducing, memory):
        axis.grid(alpha=0.3, which="both")
    figure.savefig(path, dpi=80)


def _points(row: dict) -> int:
    return row["batch"] * row["orbit"]


def _write(arguments: argparse.Namespace, rows: list[dict]) -> None:
    """All rows so far: a long measurement that is stopped has not been in vain."""
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"size": arguments.size, "rows": rows, "machine": machine(), "commit": commit()}, file, indent=2)
            file.write("\n")


def _in_fresh_process(bound: str, phase: str, size: Size, repeats: int) -> dict:
    row = json.dumps([bound, phase, asdict(size)])
    command = [sys.executable, __file__, "--row", row, "--repeats", str(repeats)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
