"""A phase: what is maximised, what moves, how fast and for how long. A value, not a mode."""

from dataclasses import dataclass
from enum import StrEnum
from math import cos, pi
from typing import Literal

ObjectiveName = Literal["log-likelihood", "sample", "unbiased"]


class Schedule(StrEnum):
    """How the learning rate changes over a phase."""

    constant = "constant"
    steps = "steps"
    cyclic = "cyclic"
    cosine = "cosine"
    warm_cosine = "warm-cosine"

    def factor(self, step: int | float, total: int) -> float:
        """What the learning rate is multiplied by at a step."""
        progress = step / total
        match self:
            case Schedule.constant:
                return 1.0
            case Schedule.steps:  # the paper's: divided by 10 after half and again after three quarters
                return 1.0 if progress < 0.5 else 0.1 if progress < 0.75 else 0.01
            case Schedule.cyclic:  # the paper's: LR/100, LR/10, LR, LR/10, LR/100, a fifth of the phase each
                return (0.01, 0.1, 1.0, 0.1, 0.01)[int(5 * progress)]
            case Schedule.cosine:
                return (1 + cos(pi * progress)) / 2
            case Schedule.warm_cosine:  # rises linearly over a twentieth of the phase, for large learning rates
                return min(1.0, 20 * progress) * (1 + cos(pi * progress)) / 2


@dataclass(frozen=True)
class Phase:
    """One stretch of training.

    Attributes:
        name: unique within a run.
        objective: "log-likelihood" of a network, or the "sample" / "unbiased" bound of an invariant GP.
        groups: which parameter groups move; the others stay bit-identical.
        steps: how many minibatches.
        learning_rate: Adam's, times the schedule.
        weight_decay: AdamW's, of weight matrices and convolutions; biases and other vectors do not decay.
        label_smoothing: of the log-likelihood; see :func:`orbitune.objectives.log_likelihood`.
        mixup: of the log-likelihood, likewise.
        natural_rate: rate ρ of the natural-gradient step on q(u) that goes with every step, times its own schedule; 0
            for none. A step forgets the share ρ of what q(u) knew: at a constant rate it knows some 1/ρ minibatches.
        batch_size, orbit_size, num_f_samples: B, S_o and S_g.
        backward_points: how many of the orbit's points are back-propagated through; None is all of them.
    """

    name: str
    objective: ObjectiveName
    groups: tuple[str, ...]
    steps: int
    learning_rate: float = 1e-3
    schedule: Schedule = Schedule.constant
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    mixup: float = 0.0
    natural_rate: float = 0.0
    natural_schedule: Schedule = Schedule.constant
    batch_size: int = 200
    orbit_size: int = 1
    num_f_samples: int = 8
    backward_points: int | None = None
