"""Paper, Table 2 and Fig. 9: PatchCamelyon, with one tied rotation range that starts at ±π/10."""

import math
from dataclasses import replace

from orbitune.config import FitConfig, OrbitConfig
from orbitune.experiments.experiment import Budget, Experiment, Metric, accuracy_metric
from orbitune.experiments.fits import compute_fit, fit_config
from orbitune.experiments.plots import accuracies_and_ranges
from orbitune.experiments.rotmnist import NO_ORBIT
from orbitune.learners import AugmentedNetwork, CrossFit, FixedRanges, PlainNetwork
from orbitune.training import Schedule

ROWS = {
    "NN": "NN",
    "GP": "deep kernel GP + no invariance",
    "NN-small": "NN + small invariance",
    "GP-small": "deep kernel GP + small invariance",
    "GP-learned": "deep kernel GP + learned invariance",
}
PAPER = {"NN": 0.7905, "GP": 0.8018, "NN-small": 0.7420, "GP-small": 0.8115, "GP-learned": 0.8171}
SMALL = {"rotation": (-math.pi / 10, math.pi / 10)}


def _rows(network: PlainNetwork, head: FixedRanges, crossfit: CrossFit, orbit_size: int) -> dict[str, FitConfig]:
    small = OrbitConfig(learn=(), ranges=SMALL, padding="reflection")
    learned = OrbitConfig(learn=("rotation",), ranges=SMALL, symmetric=True, padding="reflection")
    gp = replace(head, network=network)
    kinds = (
        (network, NO_ORBIT),
        (gp, NO_ORBIT),
        (AugmentedNetwork(network, average=False), small),  # in the paper, augmented in training only
        (gp, small),
        (replace(crossfit, final=gp), learned),
    )
    return {
        name: fit_config(learner, orbit=orbit, data="pcam", backbone="pcam", predict_orbit_size=orbit_size)
        for name, (learner, orbit) in zip(ROWS, kinds, strict=True)
    }


_SMOKE = (
    PlainNetwork(epochs=0.5, batch_size=8),
    FixedRanges(head_steps=1, num_inducing=5, batch_size=4, orbit_size=2),
    CrossFit(max_rounds=1, first_epochs=0.5, steps=1, warm_first=1, batch_size=4, orbit_size=2, num_inducing=5),
)
# Dropout and few images: more epochs than the paper's five, which see a hundred times as many.
_LAPTOP = (
    PlainNetwork(epochs=40.0, batch_size=64, schedule=Schedule.steps),
    FixedRanges(num_inducing=300, batch_size=64, orbit_size=8),
    CrossFit(first_epochs=25.0, epochs=5.0, max_rounds=6, batch_size=32, network_batch_size=64),
)
_PAPER = (
    PlainNetwork(epochs=5.0, batch_size=64, schedule=Schedule.steps),
    FixedRanges(head_steps=50_000, num_inducing=750, batch_size=32, orbit_size=20),
    CrossFit(first_epochs=3.0, epochs=1.0, steps=1000, batch_size=32, orbit_size=20, num_inducing=750),
)

EXPERIMENT = Experiment(
    name="pcam",
    title="PatchCamelyon (Table 2, Fig. 9)",
    question="Does a learned rotation range serve histopathology better than none, or than a small fixed one?",
    rows=ROWS,
    budgets={
        "smoke": Budget(1, _rows(*_SMOKE, 2)),
        "laptop": Budget(3, _rows(*_LAPTOP, 16)),
        "paper": Budget(3, _rows(*_PAPER, 20)),
    },
    compute=compute_fit,
    figure=lambda records: accuracies_and_ranges(records, ("rotation",)),
    metrics=(
        accuracy_metric(PAPER),
        Metric("rotation_half_width", "rotation, half-width", digits=2),
        Metric("num_train", "training patches", digits=0),
        Metric("num_test", "test patches", digits=0),
    ),
    pictured=("GP-learned",),
    differences=(
        "The paper has 262,144 training and 32,768 test patches of the official split. The numbers of patches in the "
        "table are ours; where they are smaller, accuracies cannot be compared with the paper's, and their order only "
        "beyond the error of so few test patches (of 750, about 1.5 points).",
        "One seed: rows differ by less than two standard errors, but for NN-small, which falls behind as in the paper. "
        "From so few patches the learned range became narrower than its start, not wider.",
        "Small rotations are “a pre-processing step” in the paper; here NN-small is trained on them and predicts from "
        "the patch as it is, GP-small averages over them in training and prediction.",
        "Softmax likelihood; the range is learned by cross-fitted evidence; images are continued by reflection.",
    ),
)
