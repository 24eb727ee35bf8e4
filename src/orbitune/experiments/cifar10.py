"""Paper, Fig. 10: on CIFAR-10 added invariance helps only if the network is adapted to it; and can φ be learned now?

The paper trains networks at a level ν of invariance and puts a sparse GP regression on the features of ten orbit points
at possibly another level. The last rows put the paper's open question to cross-fitted evidence.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from orbitune.config import FitConfig, OrbitConfig
from orbitune.data import load_dataset
from orbitune.experiments.cifar10_curves import ADAPTED, CURVES, LEVELS, PAPER, curves, evidence, shape
from orbitune.experiments.experiment import Budget, Experiment, Metric, Row, Task, accuracy_metric
from orbitune.experiments.fits import DATA_SEED, compute_fit, fit_config
from orbitune.experiments.plots import legend_once
from orbitune.experiments.rotmnist import NO_ORBIT
from orbitune.experiments.sgpr import Score, Sgpr
from orbitune.experiments.summary import mean_accuracies
from orbitune.learners import CrossFit, FixedRanges, PlainNetwork, Problem
from orbitune.likelihoods import Softmax
from orbitune.orbits import AffineOrbit
from orbitune.saving import make_backbone
from orbitune.training import Schedule

CURVES_CROSSFIT = "crossfit-45000"
ROWS = {
    **{name: f"network trained at ν = {nu:g}, SGPR at every ν" for name, nu in CURVES.items()},
    **{name: f"network trained at ν = {nu:g}, SGPR at the same ν" for name, nu in ADAPTED.items()},
    "plain": "network alone, no augmentation",
    "crossfit": "range learned by cross-fitted evidence, GP at it",
    CURVES_CROSSFIT: "likewise, with the network and the images of the curves",
}


@dataclass(frozen=True)
class CurveConfig:
    """A network and the points of a curve that it gives.

    Attributes:
        num_train, num_test: balanced subsets; None for all.
        trained_at: level of the network.
        levels: of the SGPR.
    """

    data: str
    backbone: str
    num_train: int | None
    num_test: int | None
    network: PlainNetwork
    sgpr: Sgpr
    trained_at: float = CURVES["epsilon"]
    levels: tuple[float, ...] = LEVELS


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
        orbit = AffineOrbit(level_ranges(config.trained_at), learn=())
        backbone = config.network.train_network(problem, orbit, run, f"network at {config.trained_at:g}").backbone
        scores: dict[float, Score] = {}
        for nu in config.levels:
            orbit = AffineOrbit(level_ranges(nu), learn=())
            scores[nu] = config.sgpr.score(backbone, orbit, problem, test, run, f"SGPR at {nu:g}")
    best = max(scores, key=lambda nu: scores[nu].accuracy)
    return {
        "test_accuracy": scores[best].accuracy,
        "best_level": best,
        "accuracy_by_level": {str(nu): score.accuracy for nu, score in scores.items()},
        "elbo_by_level": {str(nu): score.elbo for nu, score in scores.items()},
        "data": data.name,
        "note": data.note,
        "num_train": data.num_train,
        "num_test": data.num_test,
        "seconds": run.seconds,
    }


def figure(records: Sequence[Row]) -> Figure:
    """Accuracy and evidence against ν, best accuracy of each curve starred; single accuracies as lines across."""
    drawn = Figure(figsize=(10, 4), layout="constrained")
    accuracy_axis, evidence_axis = drawn.subplots(1, 2)
    colours = {
        name: f"C{index}" for index, name in enumerate((*CURVES, "adapted", "plain", "crossfit", CURVES_CROSSFIT))
    }
    for curve in curves(records):
        accuracies = [score.accuracy for score in curve.scores.values()]
        accuracy_axis.plot([*curve.scores], accuracies, "o-", color=colours[curve.name], label=curve.name)
        accuracy_axis.plot(curve.best, max(accuracies), "*", ms=14, color=colours[curve.name])
        elbos = [score.elbo for score in curve.scores.values()]
        evidence_axis.plot([*curve.scores], elbos, "o-", color=colours[curve.name], label=curve.name)
    for record in (r for r in records if r["model"] in colours and "accuracy_by_level" not in r):
        label = f"{record['model']}, {record['num_train']:,} images"  # perhaps fewer than the curves have
        accuracy_axis.axhline(record["test_accuracy"], ls="--", color=colours[record["model"]], label=label)
    for axis, label in ((accuracy_axis, "test accuracy"), (evidence_axis, "evidence of training images, per image")):
        axis.set(xscale="log", xlabel="level ν", ylabel=label)
        legend_once(axis)
    return drawn


def findings(records: Sequence[Row]) -> list[str]:
    """Where the curves rise and fall, and what was learned."""
    sentences = [describe(curve) for describe in (shape, evidence) for curve in curves(records)]
    for record in (r for r in records if r.get("ranges")):
        ranges = ", ".join(f"{name} [{low:.2f}, {high:.2f}]" for name, (low, high) in record["ranges"].items())
        sentences.append(f"{record['model']}, seed {record['seed']}, has learned: {ranges}.")
    means = mean_accuracies(records)
    if {"crossfit", "plain"} <= set(means):
        sentences.append(f"crossfit is {_gap(means['crossfit'], means['plain'])} plain.")
    if {CURVES_CROSSFIT, *CURVES} <= set(means):
        least, most = curves(records)[0], max(curves(records), key=lambda curve: curve.best_accuracy)
        (nu, score), accuracy = next(iter(least.scores.items())), means[CURVES_CROSSFIT]
        sentences.append(
            f"{CURVES_CROSSFIT} is {_gap(accuracy, score.accuracy)} {least.name} at ν = {nu:g}, and "
            f"{_gap(accuracy, most.best_accuracy)} {most.name} at ν = {most.best:g}, the best by the test images."
        )
    return sentences


def _gap(accuracy: float, other: float) -> str:
    return f"{100 * abs(accuracy - other):.1f} points {'ahead of' if accuracy >= other else 'behind'}"


def _rows(curve: CurveConfig, fit_network: PlainNetwork, crossfit: CrossFit, **fits: object) -> dict[str, object]:
    fits = {"data": curve.data, "backbone": curve.backbone, **fits}
    return {
        **{name: replace(curve, trained_at=nu) for name, nu in CURVES.items()},
        **{name: replace(curve, trained_at=nu, levels=(nu,)) for name, nu in ADAPTED.items()},
        "plain": fit_config(fit_network, orbit=NO_ORBIT, **fits),
        "crossfit": fit_config(crossfit, orbit=OrbitConfig(padding="zeros"), **fits),
    }


_SMOKE = _rows(
    CurveConfig("digits", "mnist-cnn", 60, 50, PlainNetwork(epochs=0.5), Sgpr(40, 10, 2, 2)),
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
    train_size=60,
    predict_orbit_size=2,
)
_SMALL = PlainNetwork(epochs=40.0, batch_size=50)
_NETWORK = PlainNetwork(epochs=30.0, schedule=Schedule.steps)
_LARGE = "resnet18-strided-narrow"
_LAPTOP = _rows(
    CurveConfig("cifar10", _LARGE, 45_000, None, _NETWORK, Sgpr(2000, num_inducing=200, steps=100)),
    _SMALL,
    CrossFit(first_epochs=16.0, max_rounds=5, network_batch_size=50, final=FixedRanges(_SMALL, num_inducing=300)),
    backbone="resnet18-narrow",
    train_size=5000,
    predict_orbit_size=16,
) | {
    CURVES_CROSSFIT: fit_config(
        CrossFit(first_epochs=8.0, max_rounds=5, final=FixedRanges(_NETWORK)),
        data="cifar10",
        backbone=_LARGE,
        train_size=45_000,
        predict_orbit_size=16,
    )
}
_FULL = replace(_NETWORK, epochs=160.0)
_PAPER = _rows(
    CurveConfig("cifar10", "resnet18-strided", 45_000, None, _FULL, Sgpr(45_000, 1000, 10, 1000)),
    _FULL,
    CrossFit(
        first_epochs=80.0,
        epochs=20.0,
        num_inducing=1000,
        orbit_size=20,
        final=FixedRanges(replace(_FULL, orbit_size=2), num_inducing=1000),
    ),
    train_size=45_000,
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
        accuracy_metric({name: PAPER[name] for name in CURVES}),  # adapted is no row, but several
        Metric("best_level", "best ν", digits=2),
        Metric("num_train", "training images", digits=0),
        Metric("num_test", "test images", digits=0),
    ),
    findings=findings,
    differences=(
        "The paper trains a ResNet-18 for 160 epochs on 45,000 images and tests on the 5,000 others of the training "
        "set; ours are scored on the official test set. The complete data set is needed for the curves and for "
        "crossfit-45000.",
        "The paper does not say how its ResNet-18 begins. With the stem for small images, a network of a quarter of "
        "the width had 0.82 at best after 20 epochs at ε on 45,000 images (a trial), more than the paper's 0.774 of "
        "160 epochs; with the strided stem of He et al. (2016), as here, half the width comes to 1 to 3 points below "
        "the paper. With the small stem the network at ε also gained more from averaging: 2.2 points, at ν = 0.1, of "
        "20,000 images (results/ of commit 494a220).",
        "Laptop: half the width; 30 epochs at the paper's learning rates; SGPR on 2,000 of the images, with 200 "
        "inducing inputs and 100 steps of L-BFGS (paper: 45,000, 1,000 and at most 1,000). A trial with 10,000 images "
        "and 500 inducing inputs at ν = 0.01 had the same accuracy.",
        "As in the paper, the network trained at 0.1 is the best, the one trained at ε is best at a small level and "
        "falls steeply beyond 0.1, and adapted networks are far ahead of it there. Otherwise than in the paper, that "
        "small level is 0.05 and not 0.01, and the network of 0.1 gains up to 0.1. And the adapted curve falls, by 3 "
        "points at 0.2 and 16 at 0.4, probably for want of training: after 30 epochs the network of 0.1 does better "
        "at 0.2, and as well at 0.4, as those that were trained there.",
        "Why the paper could learn nothing is seen in the evidence, which it does not show. Under the network trained "
        "at ε the evidence of the training images falls from the smallest level on, also where test accuracy rises: "
        "ranges would never leave their start.",
        "Cross-fitting learns shifts from 5,000 images, with a network of a quarter of the width for small images, "
        "scored on 4,000 test images, and is well ahead of the plain network there. With the curves' network and "
        "images it learns shifts that are too wide (docs/crossfit.md, “Open”), and is behind the network that was "
        "hardly augmented. From 5,000 images it learns changes of width, too; all other ranges end within ±0.16 "
        "(5,000) and ±0.1 (45,000).",
        "The accuracy of a curve is that of its best level by the test images, as in the paper; plain and the "
        "crossfits have one score each.",
    ),
)
