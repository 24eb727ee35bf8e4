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
    pretrain_steps=3000,  # 200 epochs, as in the paper: by then the network knows its images by heart
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
        "laptop": Budget(1, _rows(_LAPTOP, _CROSSFIT, data="rotated-mnist", train_size=3000, predict_orbit_size=16)),
        "paper": Budget(3, _rows(_PAPER, replace(_CROSSFIT, orbit_size=120), data="rotated-mnist")),
    },
    compute=compute_fit,
    figure=accuracies_and_ranges,
    metrics=(Metric("rotation_half_width", "rotation, half-width", digits=2), accuracy_metric()),
    findings=other_ranges,
    differences=(
        "The paper shows curves only, of 12,000 images: with fixed variances the rotation is learned, with free ones "
        "the ranges collapse. Laptop: 3,000 images, chosen among three settings because free variances collapse there. "
        "From 12,000 images they do not: after 27 epochs of pre-training, rotation grew to ±3.08 with free and to "
        "±2.51 with fixed variances (results/ of commit 1e9e430), and in a trial with the paper's 200 epochs it had "
        "come to ±2.4 with free ones, and was growing, when it was stopped.",
        "Fixed variances are no remedy here. In the first phase of the last layer rotation grows to ±0.37 with them, "
        "where it collapses with free ones; in the second, after the network has been trained under the ELBO, it "
        "collapses, too. What helps is images that the network has not seen.",
        "Laptop: q(u) takes natural-gradient steps (Adam would need far more of them), two phases of 500 steps (paper: "
        "30,000 each), ranges start at ±0.1, and the learning rate is larger and constant.",
    ),
)
