"""When the rounds of cross-fitting have settled."""

import pytest

from orbitune.learners.rounds import settled


@pytest.mark.parametrize(
    ("highs", "expected"),
    [
        ((0.1, 0.1), False),  # two rounds are one comparison
        ((0.1, 0.1, 0.1), True),
        ((0.1, 0.5, 0.52), False),  # only the last is small
        ((0.1, 0.12, 0.5), False),
        ((0.9, 0.1, 0.12, 0.14), True),  # what was before does not matter
        ((0.1, 0.15, 0.2), True),
        ((0.1, 0.18, 0.2), False),
    ],
)
def test_two_small_changes_in_a_row_are_settled(highs, expected):
    rounds = [{"bounds": [-0.05, high]} for high in highs]
    assert bool(settled(rounds, tolerance=0.06)) is expected


def test_every_bound_counts():
    still, moving = {"bounds": [-0.1, 0.1, -1.0, 1.0]}, {"bounds": [-0.1, 0.1, -2.0, 1.0]}
    assert settled([still, still, still], 0.06)
    assert not settled([still, still, moving], 0.06)
