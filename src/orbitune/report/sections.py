"""What each section of the report says, as values for the template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from markupsafe import Markup

from orbitune.config import FitConfig
from orbitune.fitting import FitResult
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.orbits import UniformOrbit
from orbitune.report.charts import confusion_chart, objective_chart, range_chart, reliability_chart, sweep_chart
from orbitune.report.history import Record, join, range_path, split_phases
from orbitune.report.pictures import data_uri, strip_uri
from orbitune.report.predictions import Predictions
from orbitune.report.scores import Scores, confusion, most_confused, score
from orbitune.report.whatif import most_changed, sweep
from orbitune.report.words import Extent, extent, reading
from orbitune.saving import Structure
from orbitune.training.evaluation import class_probabilities

NBSP = "\N{NO-BREAK SPACE}"
NUM_DRAWS = 8
LARGEST_MATRIX = 20  # classes; beyond, a confusion matrix is no longer readable

NamedScores = list[tuple[str, Scores, str]]


@dataclass(frozen=True, eq=False)
class Example:
    """An image, what the model says about it, and its orbit as a picture."""

    image: torch.Tensor
    label: int
    name: str
    predicted: str
    orbit: str


def all_scores(predictions: Predictions | None) -> NamedScores:
    """The models to compare, from before to after, each with a name, its scores and what it is."""
    if predictions is None or not predictions.num_test:
        return []
    models = [
        ("plain network", predictions.plain, "the same network without orbit and Gaussian process"),
        ("one look", predictions.single, "this model at the image as it is, not averaged over the orbit"),
        ("orbit average", predictions.invariant, "this model, as it predicts"),
    ]
    return [(name, score(predictions.labels, p), about) for name, p, about in models if p is not None]


def key_figures(scores: NamedScores, seconds: float) -> list[dict[str, str]]:
    """Three or four numbers for the top of the page."""
    figures = []
    if scores:
        (before_name, before, _), (_, after, _) = scores[0], scores[-1]
        for title, attribute, percent in (
            ("test accuracy", "accuracy", True),
            ("log-loss", "log_loss", False),
            ("calibration error", "ece", True),
        ):
            shown = [f"{100 * v:.1f}{NBSP}%" if percent else f"{v:.3f}" for v in _of(attribute, after, before)]
            figures.append({"title": title, "value": shown[0], "note": f"{before_name}: {shown[1]}"})
    figures.append({"title": "training time", "value": duration(seconds), "note": ""})
    return figures


def describe_ranges(
    ranges: Mapping[str, tuple[float, float]],
    learned: Sequence[str],
    history: list[Record],
    image_shape: tuple[int, int, int] | None,
) -> list[dict[str, Any]]:
    """A card per parameter that was learned or given: its range now and, if it was learned, how it got there."""
    cards = []
    for name, (low, high) in ranges.items():
        if name not in learned and not any((low, high)):  # held at zero: nothing to see
            continue
        shown = reading(name, *(image_shape or ())[1:])
        path = range_path(history, name) if name in learned else None
        status = extent(name, low, high).value if name in learned else "given, not learned"
        cards.append(
            {
                "title": shown.title,
                "span": f"{shown.value(low)} … {shown.value(high)}",
                "status": status,
                "harmless": status in (Extent.wide, Extent.slight),
                "chart": range_chart(shown, path) if path is not None and path.steps else None,
            }
        )
    return cards


def examples_of(
    model: InvariantGP | OrbitNetwork, predictions: Predictions | None, class_names: Sequence[str], orbit_size: int
) -> list[Example]:
    """Images with draws from their orbit; none if the model has no orbit or the run no images."""
    if predictions is None or not isinstance(model.orbit, UniformOrbit):
        return []
    images = torch.from_numpy(predictions.example_images).to(torch.float32) / 255
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        points = model.orbit(images, NUM_DRAWS, generator)  # (E, S, Ch, H, W)
    predicted = class_probabilities(model, images, orbit_size, generator).argmax(1).tolist()
    examples = []
    for image, draws, label, guess in zip(images, points, predictions.example_labels.tolist(), predicted, strict=True):
        tiles = torch.cat((image[None], draws))
        strip = strip_uri((tiles.clamp(0, 1) * 255).round().to(torch.uint8).numpy())
        examples.append(Example(image, label, class_names[label], class_names[guess], strip))
    return examples


def sweep_examples(
    model: InvariantGP | OrbitNetwork, examples: list[Example], structure: Structure, orbit_size: int = 32
) -> dict[str, Any] | None:
    """What-if charts of the example that its orbit changes most, of those the model gets right if there are any."""
    if not examples or not isinstance(model.orbit, UniformOrbit):
        return None
    generator = torch.Generator().manual_seed(0)
    right = [example for example in examples if example.predicted == example.name] or examples
    example = right[most_changed(model.orbit, torch.stack([e.image for e in right]), generator)]
    ranges = model.orbit.ranges()
    swept = [name for name in ranges if any(ranges[name])]
    cards = []
    for name in swept:
        result = sweep(model, example.image, example.label, name, orbit_size, generator)
        shown = reading(name, *structure.image_shape[1:])
        cards.append(
            {
                "title": shown.title,
                "rival": structure.class_names[result.rival.label],
                "chart": sweep_chart(shown, result, ranges[name], structure.class_names),
            }
        )
    return {"name": example.name, "cards": cards, "band": isinstance(model, InvariantGP)}


def describe_scores(
    scores: NamedScores, predictions: Predictions | None, class_names: Sequence[str]
) -> dict[str, Any] | None:
    """Table, reliability before and after, confusions, and the images the model is least sure about."""
    if not scores or predictions is None:
        return None
    rows = [
        {
            "name": name,
            "about": about,
            "accuracy": f"{100 * s.accuracy:.1f}{NBSP}%",
            "error": f"± {100 * s.accuracy_error:.1f}",
            "log_loss": f"{s.log_loss:.3f}",
            "ece": f"{100 * s.ece:.1f}{NBSP}%",
        }
        for name, s, about in scores
    ]
    matrix = confusion(predictions.labels, predictions.invariant)
    reliability = [
        {
            "title": f"{when}: {name}",
            "ece": f"{100 * s.ece:.1f}{NBSP}%",
            "chart": reliability_chart(f"Reliability {when}", s),
        }
        for when, (name, s, _) in (("before", scores[0]), ("after", scores[-1]))
    ]
    mistakes = [
        {"true": class_names[row], "predicted": class_names[column], "count": count}
        for row, column, count in most_confused(matrix)
    ]
    small = len(class_names) <= LARGEST_MATRIX
    return {
        "rows": rows,
        "num_test": predictions.num_test,
        "reliability": reliability,
        "confusion": confusion_chart(matrix, class_names) if small else None,
        "mistakes": mistakes,
        "uncertain": _uncertain(predictions, class_names),
    }


def _uncertain(predictions: Predictions, class_names: Sequence[str]) -> list[dict[str, Any]]:
    cards = []
    for index, image in zip(predictions.uncertain.tolist(), predictions.uncertain_images, strict=True):
        first, second = np.argsort(-predictions.invariant[index])[:2].tolist()
        label = int(predictions.labels[index])
        cards.append(
            {
                "uri": data_uri(image),
                "true": class_names[label],
                "right": first == label,
                "guesses": [
                    f"{class_names[c]} {100 * predictions.invariant[index, c]:.0f}{NBSP}%" for c in (first, second)
                ],
            }
        )
    return cards


def describe_objectives(history: list[Record]) -> list[dict[str, str | Markup]]:
    """The evidence while ranges moved and at fixed ranges, and the log-likelihood of the networks."""
    phases = split_phases(history)
    moving, resting = ([s for s in phases if s.ranges_move is moves] for moves in (True, False))
    kinds = [
        (
            "Evidence while the ranges moved",
            "Bound on the log evidence (ELBO) per image, in nats. Noisy, since every step sees a few images.",
            join(moving, lambda record: record.get("elbo")),
        ),
        (
            "Evidence at fixed ranges",
            "The same bound while the final model learned.",
            join(resting, lambda record: record.get("elbo")),
        ),
        (
            "Networks",
            "Log-likelihood per image of the networks, one after the other.",
            join(phases, lambda record: record.get("log_likelihood")),
        ),
    ]
    return [
        {
            "title": title,
            "caption": caption,
            "phases": ", ".join(dict.fromkeys(name for _, name in path.starts)),
            "chart": objective_chart(title, path),
        }
        for title, caption, path in kinds
        if path.steps
    ]


def facts(record: Mapping[str, Any], config: FitConfig, result: FitResult) -> list[tuple[str, str]]:
    """What was run, on what, and what it cost."""
    machine = record.get("machine", {})
    evidence = result.elbo_per_datum
    rows = [
        ("data", record.get("data")),
        ("note", record.get("note")),
        ("images", f"{record.get('num_train', 0):,} to learn from, {record.get('num_test', 0):,} to test on"),
        ("seed", config.seed),
        ("ranges found by", config.learner),
        ("likelihood", config.likelihood),
        ("network", config.backbone),
        ("evidence", None if evidence is None else f"{evidence:.3f} nats per image".replace("-", "−")),
        ("time", duration(result.seconds)),
        ("processor", machine.get("cpu")),
        ("threads", machine.get("threads")),
        (
            "versions",
            ", ".join(f"{name} {machine[name]}" for name in ("orbitune", "torch", "python") if name in machine),
        ),
        ("commit", record.get("commit")),
    ]
    return [(name, str(value)) for name, value in rows if value not in (None, "")]


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    total = round(seconds)
    if total < 60:
        return f"{total}{NBSP}s"
    minutes, rest = divmod(total, 60)
    return f"{minutes}{NBSP}min {rest}{NBSP}s" if minutes < 60 else f"{minutes // 60}{NBSP}h {minutes % 60}{NBSP}min"


def _of(attribute: str, *scores: Scores) -> list[float]:
    return [getattr(s, attribute) for s in scores]
