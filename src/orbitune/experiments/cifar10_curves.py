"""The curves of the paper's Fig. 10: put together from the records of networks, and told in words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orbitune.experiments.experiment import Row
from orbitune.experiments.sgpr import Score

LEVELS = (0.01, 0.05, 0.1, 0.2, 0.4)
CURVES = {"epsilon": 0.01, "tenth": 0.1}
"""Rows whose SGPR is scored at every level, by the level of their network."""
ADAPTED = {f"adapted-{nu:g}": nu for nu in LEVELS if nu > max(CURVES.values())}
"""What the adapted curve has beside them, where the others fall: rows whose SGPR is scored at their network's level."""
PAPER = {"epsilon": 0.774, "tenth": 0.821, "adapted": 0.811}
"""The best of each curve."""


@dataclass(frozen=True)
class Curve:
    """Scores of the SGPR by level, on one seed.

    Attributes:
        name: "epsilon", "tenth" or "adapted".
        num_images: to train the network on, and to test the SGPR on.
    """

    name: str
    seed: int
    scores: dict[float, Score]
    num_images: tuple[int, int]

    @property
    def best(self) -> float:
        """The level of the highest accuracy."""
        return max(self.scores, key=lambda nu: self.scores[nu].accuracy)

    @property
    def best_accuracy(self) -> float:
        """The accuracy there."""
        return self.scores[self.best].accuracy

    @property
    def most_evident(self) -> float:
        """The level of the highest evidence."""
        return max(self.scores, key=lambda nu: self.scores[nu].elbo)


def curves(records: Sequence[Row]) -> list[Curve]:
    """Curves of one network each, then the adapted ones: every network at its own level, where there are several."""
    found = []
    adapted: dict[tuple[int, tuple[int, int]], dict[float, Score]] = {}
    for record in (r for r in records if "accuracy_by_level" in r):
        name, seed, num_images = record["model"], record["seed"], images(record)
        elbos = record["elbo_by_level"]
        scores = {float(nu): Score(accuracy, elbos[nu]) for nu, accuracy in record["accuracy_by_level"].items()}
        if name in CURVES:
            found.append(Curve(name, seed, scores, num_images))
        own = (CURVES | ADAPTED)[name]
        adapted.setdefault((seed, num_images), {})[own] = scores[own]
    return found + [
        Curve("adapted", seed, dict(sorted(scores.items())), num_images)
        for (seed, num_images), scores in adapted.items()
        if len(scores) > len(CURVES)
    ]


def images(record: Row) -> tuple[int, int]:
    """How many images a record is about, to train on and to test on."""
    return record["num_train"], record["num_test"]


def shape(curve: Curve) -> str:
    """Where a curve is best, which other levels the test images cannot tell from that, and what each level gains."""
    accuracies = {nu: score.accuracy for nu, score in curve.scores.items()}
    accuracy = curve.best_accuracy
    error = math.sqrt(accuracy * (1 - accuracy) / curve.num_images[1])
    ties = ", ".join(f"{nu:g}" for nu, other in accuracies.items() if nu != curve.best and other >= accuracy - error)
    (first, at_first), *others = accuracies.items()
    gains = ", ".join(f"{100 * (other - at_first):+.1f} at {nu:g}" for nu, other in others)
    best = f"{accuracy:.4f} (paper: {PAPER[curve.name]:g}) at ν = {curve.best:g}"
    return (
        f"{curve.name}, seed {curve.seed}: best {best}"
        + (f", {ties} within a standard error ({100 * error:.1f} points)" if ties else "")
        + f"; points gained over ν = {first:g}: {gains}."
    )


def evidence(curve: Curve) -> str:
    """What the evidence of the training images, per image, says of the levels."""
    elbos = ", ".join(f"{score.elbo:.1f} at {nu:g}" for nu, score in curve.scores.items())
    return f"{curve.name}, seed {curve.seed}: the evidence is highest at ν = {curve.most_evident:g} ({elbos})."
