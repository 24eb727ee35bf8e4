"""Settings for a given patience: what differs from a learner's defaults."""

from typing import Any

_SMOKE_FINAL = {"network": {"epochs": 1.0}, "head_steps": 3, "num_inducing": 20, "orbit_size": 2}

BUDGETS: dict[str, dict[str, dict[str, Any]]] = {
    # Seconds: to see that everything runs.
    "smoke": {
        "crossfit": {
            "max_rounds": 2,
            "first_epochs": 1.0,
            "epochs": 1.0,
            "steps": 3,
            "warm_first": 3,
            "warm": 2,
            "batch_size": 16,
            "orbit_size": 2,
            "num_inducing": 20,
            "final": _SMOKE_FINAL,
        },
        "coordinate": {
            "pretrain_steps": 5,
            "gp_steps": 3,
            "network_steps": 2,
            "num_inducing": 20,
            "batch_size": 16,
            "orbit_size": 2,
        },
        "joint": {"pretrain_steps": 5, "steps": 4, "num_inducing": 20, "batch_size": 16, "orbit_size": 2},
        "max-likelihood": {"steps": 4, "batch_size": 16, "orbit_size": 2},
        "fixed": _SMOKE_FINAL,
        "augmented": {"network": {"epochs": 1.0}},
        "plain": {"epochs": 1.0},
    },
    # Minutes on two cores, for a few thousand images: the defaults of the learners.
    "laptop": {},
    # The demo: 5,000 digits.
    "demo": {
        "crossfit": {
            "max_rounds": 4,
            "decay_from": 3,
            "first_epochs": 16.0,
            "epochs": 3.0,
            "steps": 26,
            "tolerance": 0.1,
            "final": {"network": {"epochs": 15.0}, "head_steps": 40, "num_inducing": 200, "orbit_size": 4},
        }
    },
    # The paper's sizes, for a GPU and patience.
    "paper": {
        "crossfit": {"num_inducing": 1200, "orbit_size": 120, "batch_size": 200, "steps": 200},
        "coordinate": {
            "pretrain_steps": 60_000,
            "gp_steps": 30_000,
            "network_steps": 30_000,
            "cycles": 3,
            "num_inducing": 1200,
            "orbit_size": 120,
        },
        "joint": {"steps": 60_000, "num_inducing": 1200, "orbit_size": 120},
        "max-likelihood": {"steps": 60_000, "orbit_size": 120},
        "fixed": {"network": {"epochs": 200.0}, "num_inducing": 1200, "orbit_size": 120, "head_steps": 1000},
        "augmented": {"network": {"epochs": 200.0}},
        "plain": {"epochs": 200.0},
    },
}
