"""Scores of the report: known cases, and scikit-learn as an oracle."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.metrics import log_loss as sklearn_log_loss

from orbitune.report.predictions import entropy
from orbitune.report.scores import confusion, log_loss, most_confused, reliability_bins, score


@pytest.fixture
def random_predictions():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.full(4, 0.5), size=500)
    return rng.integers(4, size=500), probabilities


def test_accuracy_log_loss_and_confusion_agree_with_scikit_learn(random_predictions):
    labels, probabilities = random_predictions
    scores, predicted = score(labels, probabilities), probabilities.argmax(1)
    assert scores.accuracy == pytest.approx(accuracy_score(labels, predicted))
    assert scores.log_loss == pytest.approx(sklearn_log_loss(labels, probabilities, labels=range(4)))
    np.testing.assert_array_equal(confusion(labels, probabilities), confusion_matrix(labels, predicted))


def test_calibration_error_of_a_case_computed_by_hand():
    # Four predictions at 0.8, three of them right; one at 0.6, wrong: (4·|0.75 − 0.8| + 1·|0 − 0.6|) / 5.
    probabilities = np.array([[0.8, 0.2]] * 4 + [[0.6, 0.4]])
    labels = np.array([0, 0, 0, 1, 1])
    assert score(labels, probabilities).ece == pytest.approx((4 * 0.05 + 0.6) / 5)
    low, high = reliability_bins(labels, probabilities)
    assert (low.count, low.accuracy, low.confidence) == (1, 0, pytest.approx(0.6))
    assert (high.count, high.accuracy, high.confidence) == (4, 0.75, pytest.approx(0.8))


def test_certainty_is_perfect_if_right_and_worst_if_wrong():
    certain = np.eye(3)
    right, wrong = score(np.arange(3), certain), score(np.array([1, 2, 0]), certain)
    assert (right.accuracy, right.ece, right.log_loss, right.accuracy_error) == (1, 0, 0, 0)
    assert (wrong.accuracy, wrong.ece) == (0, 1)
    assert np.isfinite(wrong.log_loss) and wrong.log_loss > 80


def test_probabilities_that_say_how_often_they_are_right_are_calibrated():
    rng = np.random.default_rng(1)
    p = rng.uniform(0.5, 1, size=200_000)
    probabilities = np.stack((p, 1 - p), axis=1)
    labels = (rng.uniform(size=len(p)) > p).astype(np.int64)
    bins = reliability_bins(labels, probabilities)
    assert sum(b.count for b in bins) == len(p)
    for b in bins:  # four standard errors
        assert abs(b.accuracy - b.confidence) < 4 * np.sqrt(0.25 / b.count)
    assert score(labels, probabilities).ece < 0.01
    assert score(labels, np.stack((p**4, 1 - p**4), axis=1)).ece > 0.1


def test_log_loss_of_uniform_guesses_is_the_log_of_the_number_of_classes():
    labels, uniform = np.array([0, 3, 4]), np.full((3, 5), 0.2, np.float32)
    assert log_loss(labels, uniform) == pytest.approx(np.log(5))
    np.testing.assert_allclose(entropy(uniform), np.log(5), rtol=1e-6)
    assert entropy(np.eye(5))[0] == 0


def test_the_most_frequent_mistakes_come_first_and_right_answers_never():
    matrix = np.array([[9, 0, 2], [5, 9, 0], [0, 0, 9]])
    assert most_confused(matrix) == [(1, 0, 5), (0, 2, 2)]
    assert most_confused(np.diag([3, 4])) == []
