"""Paper, Figs. 6 and 7: subsets of MNIST, from 312 images to all: accuracies, and the ranges learned by size."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from orbitune.config import FitConfig, OrbitConfig
from orbitune.experiments.experiment import Budget, Experiment, Metric, Row, accuracy_metric
from orbitune.experiments.fits import compute_fit, fit_config, half_width
from orbitune.experiments.plots import legend_once
from orbitune.experiments.rotmnist import (
    NO_ORBIT,
    SMOKE_DATA,
    paper_learners,
    smoke_learners,
    thorough,
)
from orbitune.experiments.summary import mean_accuracies
from orbitune.learners import CrossFit, FixedRanges, PlainNetwork
from orbitune.learners.base import steps_of
from orbitune.training import Schedule

SIZES = (312, 1250, 5000, 20_000, 60_000)
MODELS = {"NN": "network", "GP": "non-invariant deep kernel GP", "invGP": "invariant deep kernel GP"}
FEW = 1250
"""Up to so many images, the last network of the invariant model is trained on mixed pairs of them."""
PAPER_NETWORK = f"paperNN-{SIZES[-1]}"


Learners = tuple[PlainNetwork, FixedRanges, CrossFit]
"""How the three models are trained, in the order of MODELS."""


def compositions(learners: Learners, size: int, **shared: object) -> dict[str, FitConfig]:
    """The three models on one subset; ``shared`` are options of :class:`FitConfig`."""
    kinds = (("softmax", NO_ORBIT), ("gaussian", NO_ORBIT), ("gaussian", OrbitConfig(start=0.1)))
    return {
        f"{model}-{size}": fit_config(learner, likelihood=likelihood, orbit=orbit, **shared)
        for model, learner, (likelihood, orbit) in zip(MODELS, learners, kinds, strict=True)
    }


def smoke_size_learners() -> Learners:
    """Seconds, to see that it runs."""
    learners = smoke_learners()
    return learners.network, learners.deep, learners.invariant_deep


def laptop_learners(size: int) -> Learners:
    """About as many images seen for every size: more epochs on fewer images, within reason."""

    def epochs(images: int, least: float, most: float) -> float:
        return min(max(images / size, least), most)

    network = thorough(epochs(400_000, 10.0, 400.0))
    # Mixing in pairs is for many versions of few images: the network without an orbit is not better for it.
    long = replace(network, epochs=epochs(1_200_000, 20.0, 1600.0), mixup=0.3 if size <= FEW else 0.0)
    final = FixedRanges(long, num_inducing=min(500, size))
    invariant = CrossFit(
        first_epochs=epochs(250_000, 4.0, 60.0), epochs=epochs(60_000, 1.0, 20.0), look_ahead_floor=0.2, final=final
    )
    return network, FixedRanges(network, num_inducing=min(500, size)), invariant


def paper_network(size: int, iterations: int = 60_000) -> PlainNetwork:
    """As many iterations of 200 images for every size, without any regularisation, as in the paper."""
    batch_size = min(200, size)
    epochs = iterations / steps_of(1, size, batch_size)
    return PlainNetwork(epochs=epochs, schedule=Schedule.constant, batch_size=batch_size)


def paper_size_learners(size: int) -> Learners:
    """The paper's sizes."""
    learners, network = paper_learners(), paper_network(size)
    num_inducing = min(1200, size)
    final = replace(learners.invariant_deep.final, network=replace(network, orbit_size=16), num_inducing=num_inducing)
    return (
        network,
        replace(learners.deep, network=network, num_inducing=num_inducing),
        replace(learners.invariant_deep, final=final, num_inducing=num_inducing),
    )


def laptop() -> dict[str, FitConfig]:
    """All three models on every subset, and the paper's own network on the largest, for a third of its iterations."""
    paper = fit_config(paper_network(SIZES[-1], 20_000), orbit=NO_ORBIT, data="mnist", train_size=SIZES[-1])
    return _all(laptop_learners, 16) | {PAPER_NETWORK: paper}


def _all(make: Callable[[int], Learners], orbit_size: int) -> dict[str, FitConfig]:
    rows: dict[str, FitConfig] = {}
    for size in SIZES:
        rows |= compositions(make(size), size, data="mnist", train_size=size, predict_orbit_size=orbit_size)
    return rows


def figure(records: Sequence[Row]) -> Figure:
    """Accuracy against size for the three models, and what the invariant one learned."""
    drawn = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = drawn.subplots(1, 2)
    for model, text in MODELS.items():
        rows = [r for r in records if r["model"].split("-")[0] == model]
        _draw(left, rows, [r["test_accuracy"] for r in rows], text)
    invariant = [r for r in records if r["model"].startswith("invGP")]
    for name in ("rotation", "translate_x"):
        _draw(right, invariant, [half_width(r, name) for r in invariant], name.replace("_", " "))
    for axis, label in ((left, "test accuracy"), (right, "learned half-width")):
        axis.set(xscale="log", xlabel="training images", ylabel=label)
        axis.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
        axis.set_xticks([], minor=True)
        legend_once(axis)
    return drawn


def _draw(axis: Axes, rows: Sequence[Row], values: Sequence[float], label: str) -> None:
    """A dot per row and seed, and a line through the means."""
    by_size = _by_size(rows, values)
    (line,) = axis.plot(list(by_size), [sum(v) / len(v) for v in by_size.values()], label=label)
    dots = [(size, value) for size, several in by_size.items() for value in several]
    axis.plot([size for size, _ in dots], [value for _, value in dots], "o", ms=4, color=line.get_color())


def _by_size(rows: Sequence[Row], values: Sequence[float]) -> dict[int, list[float]]:
    """The values of rows, seeds together, by the number of images."""
    by_size: dict[int, list[float]] = {}
    for row, value in zip(rows, values, strict=True):
        by_size.setdefault(int(row["model"].split("-")[1]), []).append(value)
    return by_size


def findings(records: Sequence[Row]) -> list[str]:
    """Where the invariant model is ahead of both others, what 1,250 images are worth to it, its rotation by size."""
    means = mean_accuracies(records)
    complete = [size for size in SIZES if all(f"{model}-{size}" in means for model in MODELS)]
    ahead = [size for size in complete if means[f"invGP-{size}"] > max(means[f"NN-{size}"], means[f"GP-{size}"])]
    sentences = []
    if complete:
        sentences.append(
            f"The invariant model is ahead of both others at {len(ahead)} of the {len(complete)} sizes that were run."
        )
    whole = {f"NN-{SIZES[-1]}": "as ours", PAPER_NETWORK: "as the paper's"}
    gaps = [
        f"{100 * (means['invGP-1250'] - means[name]):+.2f} points where that is trained {how}"
        for name, how in whole.items()
        if {"invGP-1250", name} <= set(means)
    ]
    if gaps:
        sentences.append(f"The invariant model of 1,250 images less the network of 60,000: {', '.join(gaps)}.")
    invariant = [r for r in records if r["model"].startswith("invGP")]
    widths = _by_size(invariant, [half_width(r, "rotation") for r in invariant])
    if len(widths) > 1:
        each = ", ".join(f"±{sum(w) / len(w):.2f} from {size:,}" for size, w in widths.items())
        sentences.append(f"Rotation learned: {each} images.")
    return sentences


EXPERIMENT = Experiment(
    name="mnist-subsets",
    title="Subsets of MNIST (Figs. 6 and 7)",
    question="Does learning invariances help most where data are scarce, and are larger ranges learned there?",
    rows={f"{model}-{size}": f"{text}, {size:,} images" for size in SIZES for model, text in MODELS.items()}
    | {PAPER_NETWORK: f"network, {SIZES[-1]:,} images, trained as in the paper, for a third of its iterations"},
    budgets={
        "smoke": Budget(1, compositions(smoke_size_learners(), SIZES[0], **SMOKE_DATA | {"data": "digits"})),
        "laptop": Budget(1, laptop()),
        "paper": Budget(3, _all(paper_size_learners, 120)),
    },
    compute=compute_fit,
    figure=figure,
    metrics=(
        accuracy_metric(),
        Metric("rotation_half_width", "rotation, half-width", digits=2),
    ),
    pictured=("invGP-312",),
    findings=findings,
    differences=(
        "The paper shows these numbers in figures only, so none stand here: it finds the invariant model ahead at "
        "every size, most at the smallest, 1,250 images nearly matching the network on all of MNIST, and larger "
        "rotations on smaller sets.",
        "Ranges are learned by cross-fitted evidence, with free variances, from ±0.1 (paper: 0.02). Likelihoods are "
        "the paper's: Softmax for the network, Gaussian for the GPs. With Softmax for the GPs, too, a trial on 312 "
        "images learned hardly any rotation (±0.04, and ±0.36 with the Gaussian).",
        "Laptop: networks see about 400,000 images (200,000 at size 312, 600,000 at 60,000); the last network of the "
        "invariant model, which never sees an image twice in the same way, about 1,200,000 (800,000 at 312). Labels of "
        "all of them are smoothed (0.1), as in all networks of rotated MNIST, for which that was chosen on 8,000 "
        "images, some 1,100 of them test images here; without it, the network on 312 images had 0.9148 (results/ of "
        "commit 1570fd1).",
        "Laptop: the last network of the invariant model of 312 and 1,250 images sees mixed pairs of them (mixup, α = "
        "0.3), which none of the other networks does: of 1,250 images, without an orbit, it gave 0.972 instead of "
        "0.974 (a trial). It was chosen by trials on seeds 0 and 4, scored on other training digits "
        "(docs/crossfit.md, “Few images”). Without it seeds 0 to 4 had 0.9884, 0.9918, 0.9905, 0.9877 and 0.9865 "
        "(results/ of commit 3cf65e4; all but seed 0 in single precision, with other ranges), 0.16 points less on "
        "average.",
        "Our aim, 1,250 images within half a point of the network on 60,000, is reached on the average of five seeds, "
        "each on other 1,250 images: by 0.16 points where that network is trained as in the paper (constant learning "
        "rate, no smoothing; a third of its 60,000 iterations, after which it knows all labels by heart), and by 0.02 "
        "points where it is trained as ours, less than the standard error of that average (0.06). Most other rows have "
        "one seed.",
        "Larger rotations are learned on smaller sets, as in the paper, but for 20,000 images (one seed); seeds of "
        "1,250 images differ by as much as sizes do (±0.17 to ±0.42).",
    ),
)
