"""How good probabilities are: accuracy, log-loss, calibration and confusions, in plain numpy."""

from dataclasses import dataclass

import numpy as np

NUM_BINS = 10


@dataclass(frozen=True)
class Bin:
    """The predictions whose confidence lies in [low, high): how many, how sure on average, and how often right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Scores:
    """Scores of class probabilities (T, C) against labels (T,).

    Attributes:
        accuracy: share of labels that the most probable class gets right.
        accuracy_error: its standard error, √(a(1 − a)/T).
        log_loss: −mean log p(label), in nats.
        ece: expected calibration error, Σ_b (n_b/T) |accuracy_b − confidence_b|.
        bins: of the reliability diagram; empty bins are left out.
    """

    accuracy: float
    accuracy_error: float
    log_loss: float
    ece: float
    bins: tuple[Bin, ...]


def score(labels: np.ndarray, probabilities: np.ndarray) -> Scores:
    """All scores at once."""
    accuracy = float((probabilities.argmax(1) == labels).mean())
    bins = reliability_bins(labels, probabilities)
    return Scores(
        accuracy,
        float(np.sqrt(accuracy * (1 - accuracy) / len(labels))),
        log_loss(labels, probabilities),
        sum(b.count * abs(b.accuracy - b.confidence) for b in bins) / len(labels),
        bins,
    )


def log_loss(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """−mean log p(label). A zero counts as the smallest positive number of the probabilities' precision."""
    of_label = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
    return float(-np.log(np.maximum(of_label, np.finfo(of_label.dtype).tiny).astype(np.float64)).mean())


def reliability_bins(labels: np.ndarray, probabilities: np.ndarray, num_bins: int = NUM_BINS) -> tuple[Bin, ...]:
    """Predictions by the probability of their most probable class, in bins of equal width."""
    confidence = probabilities.max(1).astype(np.float64)
    correct = probabilities.argmax(1) == labels
    index = np.minimum((confidence * num_bins).astype(int), num_bins - 1)
    bins = []
    for b in np.unique(index):
        members = index == b
        bins.append(
            Bin(
                float(b / num_bins),
                float((b + 1) / num_bins),
                int(members.sum()),
                float(confidence[members].mean()),
                float(correct[members].mean()),
            )
        )
    return tuple(bins)


def confusion(labels: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """Counts (C, C): rows are the true classes, columns the predicted ones."""
    num_classes = probabilities.shape[1]
    pairs = labels * num_classes + probabilities.argmax(1)
    return np.bincount(pairs, minlength=num_classes**2).reshape(num_classes, num_classes)


def most_confused(matrix: np.ndarray, num: int = 5) -> list[tuple[int, int, int]]:
    """The most frequent mistakes as (true class, predicted class, count), the most frequent first."""
    mistakes = matrix - np.diag(np.diag(matrix))
    order = np.argsort(-mistakes, axis=None, kind="stable")[:num]
    rows, columns = np.unravel_index(order, matrix.shape)
    found = [(int(row), int(column), int(mistakes[row, column])) for row, column in zip(rows, columns, strict=True)]
    return [mistake for mistake in found if mistake[2]]
