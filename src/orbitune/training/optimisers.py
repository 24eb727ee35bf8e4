"""An optimiser for few parameters with noisy gradients."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn


class SignificantAdam(torch.optim.Optimizer):
    """Adam whose steps shrink where the gradient is not significantly different from zero.

    Adam divides by the size of the gradient, so a parameter whose gradient is nothing but noise walks at random, and as
    fast as one that knows where to go. With the running mean m and mean square v of the gradient, u = m/√v is Adam's
    step, and κ_t = √(Σ weights²) of the running mean is the size of u under pure noise: z = u/κ_t is the significance
    of the mean. Steps are

        −lr · u · z² / (z² + z₀²).

    Where there is a direction (z ≫ z₀) this is Adam; where there is none, parameters stay where they are, and no
    decay of the learning rate is needed for them to settle.

    Args:
        params: parameters or groups, as for every optimiser.
        lr: learning rate.
        betas: decay of the running mean and of the running mean square.
        significance: z₀.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float = 0.1,
        betas: tuple[float, float] = (0.9, 0.99),
        significance: float = 2.0,
    ):
        super().__init__(params, {"lr": lr, "betas": betas, "significance": significance})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # ty: ignore[incompatible-method-override]
        """Take one step; ``closure`` is not used."""
        for group in self.param_groups:
            beta_1, beta_2 = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["step"] = 0
                    state["mean"] = torch.zeros_like(parameter)
                    state["mean_square"] = torch.zeros_like(parameter)
                state["step"] += 1
                t, m, v = state["step"], state["mean"], state["mean_square"]
                m.lerp_(parameter.grad, 1 - beta_1)
                v.lerp_(parameter.grad.square(), 1 - beta_2)
                u = (m / (1 - beta_1**t)) / ((v / (1 - beta_2**t)).sqrt() + 1e-12)
                noise = ((1 - beta_1) / (1 + beta_1) * (1 + beta_1**t) / (1 - beta_1**t)) ** 0.5
                z_squared = (u / noise).square()
                parameter.sub_(group["lr"] * u * z_squared / (z_squared + group["significance"] ** 2))
