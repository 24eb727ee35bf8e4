"""Paper, Fig. 5: with free variances the Gaussian model's orbit collapses; with cross-fitting it need not."""

from dataclasses import replace

from orbitune.config import FitConfig, OrbitConfig
from orbitune.experiments.experiment import Budget, Experiment, Metric, accuracy_metric
from orbitune.experiments.fits import compute_fit, fit_config, other_ranges
from orbitune.experiments.plots import accuracies_and_ranges
from orbitune.experiments.rotmnist import SMOKE_DATA, smoke_learners
from orbitune.learners import CoordinateAscent, CrossFit, FixedRanges, PlainNetwork
from orbitune.training import Schedule

ORBIT = OrbitConfig(start=0.1)


def _rows(coordinate: CoordinateAscent, crossfit: CrossFit, **options: object) -> dict[str, FitConfig]:
    learners = {
        "fixed": replace(coordinate, fix_variances=True),
        "free": replace(coordinate, fix_variances=False),
        "crossfit": crossfit,
    }
    return {
        name: fit_config(learner, orbit=ORBIT, likelihood="gaussian", **options) for name, learner in learners.items()
    }


_SMOKE = CoordinateAscent(
    pretrain_steps=3, gp_steps=2, network_steps=1, num_inducing=10, batch_size=10, orbit_size=2, natural_rate=0.1
)
_LAPTOP = CoordinateAscent(
    pretrain_steps=1600,  # with far fewer steps the evidence of these images is as good as that of others
    gp_learning_rate=0.01,
    gp_schedule=Schedule.constant,
    natural_rate=0.1,
    num_inducing=300,
    batch_size=100,
    orbit_size=8,
)
_PAPER = CoordinateAscent(
    pretrain_steps=12_000, cycles=3, gp_steps=30_000, network_steps=30_000, num_inducing=1200, orbit_size=120
)
_CROSSFIT = CrossFit(final=FixedRanges(PlainNetwork(epochs=20.0)))

EXPERIMENT = Experiment(
    name="variances",
    title="Fixed and free variances (Fig. 5)",
    question="Does the Gaussian model's orbit collapse unless kernel and noise variance are fixed, and does "
    "cross-fitting remove the need to fix them?",
    rows={
        "fixed": "coordinate ascent, kernel and noise variance fixed",
        "free": "coordinate ascent, both free",
        "crossfit": "cross-fitted evidence, both free",
    },
    budgets={
        "smoke": Budget(1, _rows(_SMOKE, smoke_learners().invariant_deep, **SMOKE_DATA)),
        "laptop": Budget(1, _rows(_LAPTOP, _CROSSFIT, data="rotated-mnist", predict_orbit_size=16)),
        "paper": Budget(3, _rows(_PAPER, replace(_CROSSFIT, orbit_size=120), data="rotated-mnist")),
    },
    compute=compute_fit,
    figure=accuracies_and_ranges,
    metrics=(Metric("rotation_half_width", "rotation, half-width", digits=2), accuracy_metric()),
    findings=other_ranges,
    differences=(
        "The paper shows curves only: with free variances the range collapses. Laptop: it does not collapse here, in "
        "either row of coordinate ascent; with free variances the rotation even grows faster, but four of the other "
        "ranges come to lie beside zero, which cross-fitting keeps in its ranges by construction. The last layer takes "
        "1,000 steps here, the paper toggles every 30,000. In one trial, whose record was not kept, it collapsed: on "
        "3,000 images, with 3,000 steps of pre-training, all ranges became points with free variances (rotation 0.03); "
        "with fixed ones rotation was ±0.35 and shrinking when it was stopped before its end. From 1,000 images, a "
        "small network that was trained for long learns nothing even with fixed variances: "
        "`test_coordinate_ascent_learns_nothing_once_the_network_has_memorised_the_data`.",
        "Laptop: the network is pre-trained for 27 epochs, q(u) takes natural-gradient steps (Adam would need far more "
        "of them), ranges start at ±0.1, and the learning rate is larger and constant.",
    ),
)
