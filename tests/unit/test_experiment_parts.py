"""The parts of experiments that compute something of their own."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import nn

from orbitune.backbones import Identity
from orbitune.errors import Interrupted, NumericalError
from orbitune.experiments import EXPERIMENTS, cifar10, cifar10_curves, sgpr
from orbitune.experiments.embeddings import spreads
from orbitune.experiments.experiment import Task
from orbitune.experiments.fig1 import findings
from orbitune.experiments.sgpr import Sgpr
from orbitune.learners import Problem
from orbitune.likelihoods import Softmax
from orbitune.orbits import AffineOrbit
from orbitune.training import Run, Silent
from orbitune.training.run import HISTORY
from stopping import StopAfter


class Features(nn.Module):
    """Features of images (N, 1, H, W) by a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, images):
        return self.function(images)


@pytest.fixture
def bars(generator):
    """Two classes: short and long bars, along the x-axis or the y-axis."""
    labels = torch.arange(40) % 2
    images = torch.zeros(40, 1, 21, 21)
    for index, label in enumerate(labels.tolist()):
        half = 3 + 4 * label
        upright = index % 4 < 2
        rows, columns = ((10 - half, 11 + half), (9, 12))[:: 1 if upright else -1]
        images[index, 0, slice(*rows), slice(*columns)] = 1
    return images, labels


def test_features_that_ignore_orientation_do_not_spread_over_it(bars):
    images, labels = bars
    invariant = spreads(Features(lambda x: x.sum((2, 3))), images, labels)  # total mass
    turning = spreads(Features(lambda x: x.sum(3)[:, 0]), images, labels)  # mass per row
    assert invariant["orientation_spread"] < 0.01 and invariant["within_class_spread"] < 1e-6
    assert turning["orientation_spread"] > 0.3 and turning["within_class_spread"] > 0.3
    assert len(turning["embeddings"]) == 12 and len(turning["embeddings"][0]) == 21


def test_the_levels_of_the_paper():
    ranges = cifar10.level_ranges(0.1)
    assert set(ranges) == set(AffineOrbit.names)
    assert ranges["rotation"] == pytest.approx((-0.1 * math.pi, 0.1 * math.pi))
    assert [math.exp(bound) for bound in ranges["log_scale_x"]] == pytest.approx([0.9, 1.1])
    assert ranges["translate_y"] == (-0.1, 0.1)


def test_fig1_counts_orderings_over_pairs_of_the_same_data():
    def record(model, seed, *mses):
        scores = [{"train_mse": a, "test_mse": b, "log_marginal_likelihood": -b} for a, b in mses]
        return {"model": model, "seed": seed, "datasets": scores}

    records = [record("plain", 0, (1, 4), (3, 4)), record("sign-invariant", 0, (2, 3), (2, 5))]
    (sentence,) = findings(records)
    assert sentence.count("50%") == 3 and "2 data sets" in sentence
    assert findings(records[:1]) == []


def test_fig1_gives_back_the_threads_that_it_does_not_use(tmp_path):
    task = Task(EXPERIMENTS["fig1"].budgets["smoke"].configs["plain"], 0, tmp_path, tmp_path / "picture", Silent())
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        EXPERIMENTS["fig1"].compute(task)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def sgpr_curve(directory, bars, progress=None, resume=False, steps=6):
    """The score on the training images, and the bound before each L-BFGS step."""
    images, labels = bars
    problem = Problem(images, labels, AffineOrbit(learn=()), Softmax(2), Identity)
    run = Run(directory, seed=0, resume=resume, progress=progress)
    if progress is not None:
        progress.run = run
    orbit = AffineOrbit({"rotation": (-1.0, 1.0)}, learn=())
    score = Sgpr(40, num_inducing=8, orbit_size=3, steps=steps).score(Identity(), orbit, problem, bars, run, "SGPR")
    lines = [json.loads(line) for line in (directory / HISTORY).read_text().splitlines()]
    return score, [line["elbo"] for line in lines]


def test_sgpr_learns_and_goes_on_after_an_interruption_as_if_there_had_been_none(bars, tmp_path):
    score, bounds = sgpr_curve(tmp_path / "straight", bars)
    assert score.accuracy > 0.9 and score.elbo > bounds[-1] > bounds[0] and len(bounds) == 6
    with pytest.raises(Interrupted):
        sgpr_curve(tmp_path / "stopped", bars, StopAfter(3))
    assert sgpr_curve(tmp_path / "stopped", bars, resume=True) == (score, bounds)


def test_the_line_search_of_the_sgpr_turns_back_where_the_bound_cannot_be_computed(bars, tmp_path, monkeypatch):
    _, free = sgpr_curve(tmp_path / "free", bars)
    true, cap, failures = sgpr.collapsed_bound, 40 * (free[0] + free[-1]) / 2, []  # the bound is that of 40 images

    def bound(*arguments):
        value = true(*arguments)
        if value.item() > cap:
            failures.append(value.item())
            raise NumericalError("no Cholesky factor")
        return value

    monkeypatch.setattr(sgpr, "collapsed_bound", bound)
    _, bounds = sgpr_curve(tmp_path / "straight", bars)
    assert failures and bounds == sorted(bounds)
    assert abs(40 * bounds[-1] - cap) < 0.1 * (cap - 40 * bounds[0])
    with pytest.raises(Interrupted):
        sgpr_curve(tmp_path / "stopped", bars, StopAfter(4))
    assert sgpr_curve(tmp_path / "stopped", bars, resume=True)[1] == bounds


def test_no_step_of_the_sgpr_is_lost(bars, tmp_path):
    """Without a line search the first trial is taken or nothing, and what was refused once is tried for ever."""
    _, bounds = sgpr_curve(tmp_path, bars, steps=25)
    assert all(after > before for before, after in pairwise(bounds))


def test_an_sgpr_that_cannot_start_says_so(bars, tmp_path, monkeypatch):
    def bound(*arguments):
        raise NumericalError("no Cholesky factor")

    monkeypatch.setattr(sgpr, "collapsed_bound", bound)
    with pytest.raises(NumericalError, match="no Cholesky factor"):
        sgpr_curve(tmp_path, bars)


def test_networks_on_subsets_take_the_steps_of_the_paper():
    budgets = EXPERIMENTS["mnist-subsets"].budgets
    for size in (312, 1250, 5000, 20_000, 60_000):
        (loop,) = budgets["paper"].configs[f"NN-{size}"].settings.plan(size)
        assert loop.steps == 60_000
    shorter, whole = (
        budgets[b].configs[row].settings for b, row in (("laptop", "paperNN-60000"), ("paper", "NN-60000"))
    )
    assert shorter == replace(whole, epochs=whole.epochs / 3)


def test_subsets_say_what_few_images_are_worth():
    def record(model, accuracy, rotation=None):
        ranges = {} if rotation is None else {"rotation": [-rotation, rotation]}
        return {"model": model, "seed": 0, "test_accuracy": accuracy, "ranges": ranges}

    say = EXPERIMENTS["mnist-subsets"].findings
    assert say([]) == []
    rows = [record("NN-1250", 0.97), record("GP-1250", 0.975), record("invGP-1250", 0.988, 0.3)]
    assert say(rows) == ["The invariant model is ahead of both others at 1 of the 1 sizes that were run."]
    _, gap, rotation = say([record("invGP-312", 0.96, 0.4), *rows, record("NN-60000", 0.995)])
    assert (
        gap.endswith("60,000: -0.70 points where that is trained as ours.")
        and "±0.40 from 312, ±0.30 from 1,250 images" in rotation
    )
    _, gap = say([*rows, record("NN-60000", 0.995), record("paperNN-60000", 0.99)])
    assert gap.endswith(
        "-0.70 points where that is trained as ours, -0.20 points where that is trained as the paper's."
    )


def test_the_models_of_table_1_are_compositions():
    rows = EXPERIMENTS["rotmnist"].budgets["laptop"].configs
    for name, config in rows.items():
        assert config.backbone == ("identity" if name in ("M2", "M3", "M4", "M5") else "mnist-cnn")
        assert (config.orbit.learn == ()) == (name in ("M1", "M2", "M3", "M6", "M7"))
        assert config.likelihood == ("gaussian" if name in ("M2", "M4", "M6", "M8", "M8+") else "softmax")
        assert config.train_size is None  # all 12,000; scored on all 50,000


def test_table_1_compares_rows_as_the_paper_does():
    ranges = {"rotation": [-3.0, 3.1], "translate_x": [-0.02, 0.01]}
    records = [
        {"model": "M6", "seed": 0, "test_accuracy": 0.95, "ranges": {}},
        {"model": "M8", "seed": 0, "test_accuracy": 0.98, "ranges": ranges},
        {"model": "M8", "seed": 1, "test_accuracy": 1.0, "ranges": {}},
    ]
    learned, gap = EXPERIMENTS["rotmnist"].findings(records)
    assert learned == "M8, seed 0: rotation [-3.00, 3.10], x-translation [-0.02, 0.01]."
    assert gap == "Invariant over non-invariant, in points (paper): M8 − M6 = 4.0 (5.1)."


def _curve(model: str, accuracies: dict[str, float], elbos: list[float], seed: int = 0) -> dict[str, object]:
    by_level = {"accuracy_by_level": accuracies, "elbo_by_level": dict(zip(accuracies, elbos, strict=True))}
    return {
        "model": model,
        "seed": seed,
        "num_train": 9,
        "num_test": 2000,
        "test_accuracy": max(accuracies.values()),
        **by_level,
    }


def test_the_curves_of_cifar10_are_told_by_peak_ties_gains_and_evidence():
    accuracies = {"0.01": 0.58, "0.1": 0.605, "0.2": 0.6, "0.4": 0.46}
    shape, evidence = cifar10.findings([_curve("epsilon", accuracies, [11.42, 3.0, -4.0, -15.0])])
    assert shape == (
        "epsilon, seed 0: best 0.6050 (paper: 0.774) at ν = 0.1, 0.2 within a standard error (1.1 points); points "
        "gained over ν = 0.01: +2.5 at 0.1, +2.0 at 0.2, -12.0 at 0.4."
    )
    assert evidence == (
        "epsilon, seed 0: the evidence is highest at ν = 0.01 (11.4 at 0.01, 3.0 at 0.1, -4.0 at 0.2, -15.0 at 0.4)."
    )


def test_the_adapted_curve_of_cifar10_takes_every_network_at_its_own_level():
    records = [
        _curve("epsilon", {"0.01": 0.6, "0.1": 0.5}, [1.0, 0.0]),
        _curve("tenth", {"0.01": 0.4, "0.1": 0.7}, [0.0, 2.0]),
        _curve("adapted-0.4", {"0.4": 0.3}, [3.0]),
        _curve("adapted-0.2", {"0.2": 0.65}, [4.0]),
        _curve("epsilon", {"0.01": 0.1}, [9.0], seed=1),
    ]
    *single, adapted = cifar10_curves.curves(records)
    assert [(curve.name, curve.seed) for curve in single] == [("epsilon", 0), ("tenth", 0), ("epsilon", 1)]
    assert (adapted.name, adapted.seed, adapted.best, adapted.most_evident) == ("adapted", 0, 0.1, 0.2)
    assert list(adapted.scores.items()) == [
        (0.01, (0.6, 1.0)),
        (0.1, (0.7, 2.0)),
        (0.2, (0.65, 4.0)),
        (0.4, (0.3, 3.0)),
    ]


def test_what_cross_fitting_learned_of_cifar10_is_compared_with_the_network_and_with_the_curves():
    fits = [
        {"model": "plain", "seed": 0, "test_accuracy": 0.75, "ranges": {}},
        {"model": "crossfit", "seed": 0, "test_accuracy": 0.79, "ranges": {"rotation": [-0.1, 0.2]}},
        {"model": "crossfit-45000", "seed": 0, "test_accuracy": 0.73, "ranges": {}},
    ]
    epsilon = _curve("epsilon", {"0.01": 0.7, "0.1": 0.72}, [2.0, 1.0])
    tenth = _curve("tenth", {"0.01": 0.8, "0.1": 0.77}, [1.0, 2.0])
    *_, ranges, ahead, beside = cifar10.findings([epsilon, tenth, *fits])
    assert ranges == "crossfit, seed 0, has learned: rotation [-0.10, 0.20]."
    assert ahead == "crossfit is 4.0 points ahead of plain."
    assert beside == (
        "crossfit-45000 is 3.0 points ahead of epsilon at ν = 0.01, and 7.0 points behind tenth at ν = 0.01, the best "
        "by the test images."
    )
    assert cifar10.findings([tenth, *fits])[-1] == ahead


def test_timing_is_told_as_the_paper_s_ratio():
    (sentence,) = EXPERIMENTS["timing"].findings([{"seed": 0, "gaussian_unbiased": 3.0, "softmax_sample": 2.0}])
    assert "takes 1.50 times as long" in sentence and "(paper: 2.3)" in sentence


def test_the_widest_of_the_other_ranges_is_named():
    record = {"model": "free", "seed": 1, "ranges": {"rotation": [-3, 3], "shear_x": [0.1, 0.3], "shear_y": [0, 0.1]}}
    (sentence,) = EXPERIMENTS["variances"].findings([record, {"model": "plain", "seed": 0, "ranges": {}}])
    assert sentence == "free, seed 1: the other half-widths are at most 0.10 (shear_x)."


def test_both_parameterisations_are_compared_seed_by_seed():
    records = [
        {"model": "alpha", "seed": 0, "rotation_half_width": 2.5},
        {"model": "alpha", "seed": 1, "rotation_half_width": 9.0},
        {"model": "reciprocal", "seed": 0, "rotation_half_width": 2.0},
    ]
    (sentence,) = EXPERIMENTS["parameterisation"].findings(records)
    assert sentence == "Seed 0: ±2.50 rad as α and ±2.00 rad as ξ (= 0.50), 0.50 apart (paper: 0.10)."
