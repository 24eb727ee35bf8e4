"""Paper, Fig. 10: on CIFAR-10 added invariance helps only if the network is adapted to it; and can φ be learned now?

The paper trains networks at a level ν of invariance and puts a sparse GP regression on the features of ten orbit points
at possibly another level. The last two rows put the paper's open question to cross-fitted evidence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure
from torch import nn

from orbitune.config import FitConfig, OrbitConfig
from orbitune.data import load_dataset
from orbitune.experiments.experiment import Budget, Experiment, Metric, Row, Task, accuracy_metric
from orbitune.experiments.fits import DATA_SEED, compute_fit, fit_config
from orbitune.experiments.plots import legend_once
from orbitune.experiments.rotmnist import NO_ORBIT
from orbitune.experiments.sgpr import Sgpr
from orbitune.experiments.summary import mean_accuracies
from orbitune.learners import CrossFit, FixedRanges, PlainNetwork, Problem
from orbitune.likelihoods import Softmax
from orbitune.orbits import AffineOrbit
from orbitune.saving import make_backbone
from orbitune.training import Run, Schedule

EPSILON, TENTH = 0.01, 0.1
ROWS = {
    "epsilon": "network trained at ν = 0.01, SGPR at every ν",
    "tenth": "network trained at ν = 0.1, SGPR at every ν",
    "adapted": "network trained at the ν of the SGPR",
    "plain": "network alone, no augmentation",
    "crossfit": "range learned by cross-fitted evidence, GP at it",
}
PAPER = {"epsilon": 0.774, "tenth": 0.821, "adapted": 0.811}


@dataclass(frozen=True)
class CurveConfig:
    """One curve of the figure.

    Attributes:
        trained_at: level of the network; None for a network of its own at every level.
        levels: of the SGPR.
        num_train, num_test: balanced subsets; None for all.
    """

    trained_at: float | None
    levels: tuple[float, ...]
    data: str
    backbone: str
    num_train: int | None
    num_test: int | None
    network: PlainNetwork
    sgpr: Sgpr


def level_ranges(nu: float) -> dict[str, tuple[float, float]]:
    """The paper's level: φ = identity ± ν·(π, 1, 1, 1, 1, 1, 1), scales 1 ± ν as logarithms."""
    scale = (math.log(1 - nu), math.log(1 + nu))
    other = dict.fromkeys(("shear_x", "shear_y", "translate_x", "translate_y"), (-nu, nu))
    return {"rotation": (-nu * math.pi, nu * math.pi), "log_scale_x": scale, "log_scale_y": scale, **other}


def compute(task: Task) -> Row:
    """A curve, or a fit."""
    return compute_fit(task) if isinstance(task.config, FitConfig) else compute_curve(task)


def compute_curve(task: Task) -> Row:
    """Test accuracy of the SGPR at each level."""
    config: CurveConfig = task.config
    run = task.open_run()
    with run.active():
        data = load_dataset(config.data, seed=DATA_SEED)
        if config.num_train is not None:
            data = data.subset(config.num_train, run.generator, num_test=config.num_test)
        problem = Problem(
            data.images(),
            data.labels(),
            AffineOrbit(learn=()),
            Softmax(data.num_classes),
            lambda: make_backbone(config.backbone, data.image_shape),
        )
        test = data.images("test"), data.labels("test")
        curve: dict[str, float] = {}
        trained: dict[float, nn.Module] = {}
        for nu in config.levels:
            level = nu if config.trained_at is None else config.trained_at
            if level not in trained:
                trained[level] = _train(config, level, problem, run)
            orbit = AffineOrbit(level_ranges(nu), learn=())
            curve[str(nu)] = config.sgpr.score(trained[level], orbit, problem, test, run, f"SGPR at {nu:g}")
            if config.trained_at is None:
                run.untrack(_name(level))
    best = max(curve, key=curve.__getitem__)
    return {
        "test_accuracy": curve[best],
        "best_level": float(best),
        "accuracy_by_level": curve,
        "data": data.name,
        "note": data.note,
        "num_train": data.num_train,
        "num_test": data.num_test,
        "seconds": run.seconds,
    }


def _train(config: CurveConfig, level: float, problem: Problem, run: Run) -> nn.Module:
    orbit = AffineOrbit(level_ranges(level), learn=())
    return config.network.train_network(problem, orbit, run, _name(level)).backbone


def _name(level: float) -> str:
    return f"network at {level:g}"


def figure(records: Sequence[Row]) -> Figure:
    """Accuracy against ν, best of each curve starred; the learned range as a line across."""
    drawn = Figure(figsize=(6, 4), layout="constrained")
    axis = drawn.subplots()
    for index, name in enumerate(ROWS):
        for record in (r for r in records if r["model"] == name):
            if "accuracy_by_level" in record:
                levels, accuracies = zip(*record["accuracy_by_level"].items(), strict=True)
                axis.plot([float(level) for level in levels], accuracies, "o-", color=f"C{index}", label=name)
                axis.plot(record["best_level"], record["test_accuracy"], "*", ms=14, color=f"C{index}")
            else:
                axis.axhline(record["test_accuracy"], ls="--", color=f"C{index}", label=name)
    axis.set(xscale="log", xlabel="level ν", ylabel="test accuracy")
    legend_once(axis)
    return drawn


def findings(records: Sequence[Row]) -> list[str]:
    """Where the curves rise and fall, and what was learned."""
    sentences = [_shape(record) for record in records if "best_level" in record]
    for record in (r for r in records if r["model"] == "crossfit"):
        ranges = ", ".join(f"{name} [{low:.2f}, {high:.2f}]" for name, (low, high) in record["ranges"].items())
        sentences.append(f"Learned by cross-fitted evidence, seed {record['seed']}: {ranges}.")
    means = mean_accuracies(records)
    if {"crossfit", "plain"} <= set(means):
        gain = 100 * (means["crossfit"] - means["plain"])
        where = "ahead of" if gain >= 0 else "behind"
        sentences.append(f"At the learned ranges the GP is {abs(gain):.1f} points {where} the plain network.")
    return sentences


def _shape(record: Row) -> str:
    """Where a curve is best, which other levels the test images cannot tell from that, and what each level gains."""
    best, accuracy = record["best_level"], record["test_accuracy"]
    error = math.sqrt(accuracy * (1 - accuracy) / record["num_test"])
    levels = [float(nu) for nu, other in record["accuracy_by_level"].items() if other >= accuracy - error]
    ties = ", ".join(f"{nu:g}" for nu in levels if nu != best)
    (first, at_first), *others = record["accuracy_by_level"].items()
    gains = ", ".join(f"{100 * (other - at_first):+.1f} at {nu}" for nu, other in others)
    return (
        f"{record['model']}, seed {record['seed']}: best at ν = {best:g}"
        + (f" ({ties} within a standard error, {100 * error:.1f} points)" if ties else "")
        + f"; points gained over ν = {first}: {gains}."
    )


def _rows(curve: CurveConfig, fit_network: PlainNetwork, crossfit: CrossFit, **options: object) -> dict[str, object]:
    fits = {"data": curve.data, "train_size": curve.num_train, "backbone": curve.backbone, **options}
    return {
        "epsilon": replace(curve, trained_at=EPSILON),
        "tenth": replace(curve, trained_at=TENTH),
        "adapted": curve,
        "plain": fit_config(fit_network, orbit=NO_ORBIT, **fits),
        "crossfit": fit_config(crossfit, orbit=OrbitConfig(padding="zeros"), **fits),
    }


_SMOKE = _rows(
    CurveConfig(None, (0.01, 0.1), "digits", "mnist-cnn", 60, 50, PlainNetwork(epochs=0.5), Sgpr(40, 10, 2, 2)),
    PlainNetwork(epochs=0.5),
    CrossFit(
        max_rounds=1,
        first_epochs=0.5,
        steps=1,
        warm_first=1,
        batch_size=8,
        orbit_size=2,
        num_inducing=10,
        final=FixedRanges(PlainNetwork(epochs=0.5), head_steps=1, num_inducing=10, batch_size=10, orbit_size=2),
    ),
    predict_orbit_size=2,
)
_NETWORK = PlainNetwork(epochs=40.0, batch_size=50)  # a network at a wide range is still learning after 16
_LAPTOP = _rows(
    CurveConfig(
        None,
        (0.01, 0.05, 0.1, 0.2, 0.4),
        "cifar10",
        "resnet18-narrow",
        5000,
        2000,
        _NETWORK,
        Sgpr(2000, num_inducing=200, steps=40),
    ),
    _NETWORK,
    CrossFit(
        first_epochs=16.0,
        max_rounds=5,
        network_batch_size=50,
        final=FixedRanges(_NETWORK, num_inducing=300),
    ),
    predict_orbit_size=16,
)
_FULL = PlainNetwork(epochs=160.0, schedule=Schedule.steps)
_PAPER = _rows(
    CurveConfig(
        None,
        (0.01, 0.02, 0.05, 0.1, 0.2, 0.4),
        "cifar10",
        "resnet18",
        None,
        None,
        _FULL,
        Sgpr(45_000, 1000, 10, 1000),
    ),
    _FULL,
    CrossFit(
        first_epochs=80.0,
        epochs=20.0,
        num_inducing=1000,
        orbit_size=20,
        final=FixedRanges(replace(_FULL, orbit_size=2), num_inducing=1000),
    ),
)

EXPERIMENT = Experiment(
    name="cifar10",
    title="CIFAR-10, where the paper could learn nothing (Fig. 10)",
    question="Does added invariance help only networks adapted to it? Does cross-fitted evidence learn a useful range?",
    rows=ROWS,
    budgets={"smoke": Budget(1, _SMOKE), "laptop": Budget(1, _LAPTOP), "paper": Budget(1, _PAPER)},
    compute=compute,
    figure=figure,
    metrics=(
        accuracy_metric(PAPER),
        Metric("best_level", "best ν", digits=2),
        Metric("num_train", "training images", digits=0),
        Metric("num_test", "test images", digits=0),
    ),
    findings=findings,
    differences=(
        "The paper trains a ResNet-18 for 160 epochs on 45,000 images and tests on 5,000 others. Laptop: a ResNet-18 "
        "of a quarter of the width, 40 epochs on a balanced subset of 5,000, SGPR on 2,000 of them with 200 inducing "
        "inputs and 40 steps of L-BFGS (paper: at most 1,000); curves are of 2,000 images of the official test set, "
        "plain and crossfit of all there are. Only the shape of the curves can be compared.",
        "As in the paper, added invariance helps where networks are trained with it, the network trained at 0.1 is "
        "the best, and the one trained at ε falls most. Otherwise than in the paper, that one still gains up to ν = "
        "0.1 (there: best at 0.01), and the adapted curve falls beyond ν = 0.2, too: a network for the widest level "
        "would need more than 5,000 images and 40 epochs (after 16 epochs it was at 0.488, record of commit 353c52c).",
        "The accuracy of a curve is that of its best level by the test images, as in the paper; plain and crossfit "
        "have one score each.",
    ),
)
