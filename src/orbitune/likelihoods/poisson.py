"""Counts."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from orbitune.errors import InputError
from orbitune.gp.laws import OrbitMarginal
from orbitune.likelihoods.base import FactorizedLikelihood


class Poisson(FactorizedLikelihood):
    """y ~ Poisson(exp f) for each of C outputs."""

    def __init__(self, num_outputs: int = 1):
        super().__init__(num_outputs)

    def encode(self, targets: Shaped[Tensor, "N *T"]) -> Float[Tensor, "N C"]:
        """Non-negative whole numbers (N,) or (N, C) as floats."""
        encoded = super().encode(targets)
        other = encoded[(encoded < 0) | (encoded != encoded.floor())]
        if len(other):
            raise InputError(
                f"targets of Poisson must be counts 0, 1, 2, …; {len(other)} are not, for example {other[0]:g}"
            )
        return encoded

    def log_prob_each(self, f: Float[Tensor, "N C"], targets: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """y f − exp f − log y!."""
        return targets * f - f.exp() - (targets + 1).lgamma()

    def conditional_mean(self, f: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """The rate exp f."""
        return f.exp()

    def expected_log_prob(
        self,
        law: OrbitMarginal,
        targets: Float[Tensor, "N C"],
        num_samples: int = 0,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, " N"]:
        """Closed form: y μ − exp(μ + var/2) − log y!, as E exp f = exp(μ + var/2)."""
        return (targets * law.mean - _mean_rate(law) - (targets + 1).lgamma()).sum(-1)

    @torch.no_grad()
    def expected_derivatives(
        self,
        law: OrbitMarginal,
        targets: Float[Tensor, "N C"],
        num_samples: int = 0,
        generator: torch.Generator | None = None,
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"]]:
        """∂ = y − E[rate] and β = E[rate]."""
        rate = _mean_rate(law)
        return targets - rate, rate

    @torch.no_grad()
    def predictive_mean(
        self, law: OrbitMarginal, num_samples: int = 0, generator: torch.Generator | None = None
    ) -> Float[Tensor, "N C"]:
        """E[rate]."""
        return _mean_rate(law)

    @torch.no_grad()
    def predictive_variance(self, law: OrbitMarginal) -> Float[Tensor, "N C"]:
        """Var[y] = E[rate] + Var[rate], with Var exp f = (exp(var) − 1) E[exp f]²."""
        rate = _mean_rate(law)
        return rate + law.var.expm1() * rate.square()

    def example_targets(self) -> Tensor:
        """A few counts."""
        return torch.tensor([0.0, 1.0, 7.0])[:, None].expand(3, self.num_outputs)


def _mean_rate(law: OrbitMarginal) -> Float[Tensor, "N C"]:
    return (law.mean + law.var / 2).exp()
