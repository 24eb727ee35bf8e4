"""Gaussian noise: regression, and the paper's classification by regression on one-hot codes."""

import math
from typing import ClassVar

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitune.errors import InputError
from orbitune.gp.laws import OrbitMarginal, OrbitMoments
from orbitune.likelihoods.base import FactorizedLikelihood, Likelihood
from orbitune.likelihoods.classification import Softmax, check_labels


class Gaussian(FactorizedLikelihood):
    """y = f + N(0, σ²) for each of C outputs.

    The only likelihood quadratic in f, hence the only one that may use the unbiased :class:`OrbitMoments`.

    Args:
        num_outputs: C.
        noise_variance: initial σ²; learned as log σ².
        labels: targets are class labels 0 … C−1, regressed on as one-hot codes (paper). Predictive means are then
            probabilities: those of the C codes under the predictive density, normalised.
    """

    shared_curvature: ClassVar[bool] = True

    def __init__(self, num_outputs: int = 1, noise_variance: float = 0.05, *, labels: bool = False):
        super().__init__(num_outputs)
        if not noise_variance > 0:
            raise InputError(f"noise variance must be positive, got {noise_variance}")
        self.labels = labels
        self.log_noise_variance = nn.Parameter(torch.tensor(math.log(noise_variance)))

    @property
    def noise_variance(self) -> Float[Tensor, ""]:
        """σ²."""
        return self.log_noise_variance.exp()

    def for_network(self) -> Likelihood:
        """For labels, a Softmax: regression on codes is for the GP's sake (paper), a network does not need it."""
        return Softmax(self.num_outputs) if self.labels else super().for_network()

    def encode(self, targets: Shaped[Tensor, "N *T"]) -> Float[Tensor, "N C"]:
        """Numbers (N, C), or labels (N,) as one-hot codes (N, C)."""
        if not self.labels:
            return super().encode(targets)
        labels = check_labels(targets, self.num_outputs)
        return nn.functional.one_hot(labels, self.num_outputs).to(self.log_noise_variance.dtype)

    def log_prob_each(self, f: Float[Tensor, "N C"], targets: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """log N(y; f, σ²)."""
        return self._log_density((targets - f).square())

    def _log_density(self, squared_error: Tensor) -> Tensor:
        return -0.5 * (math.log(2 * math.pi) + self.log_noise_variance + squared_error / self.noise_variance)

    def conditional_mean(self, f: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """E[y | f] = f; for labels, p(c) ∝ N(e_c; f, σ²) over the one-hot codes e_c."""
        return self._log_code_probabilities(f, self.noise_variance).exp() if self.labels else f

    def example_targets(self) -> Tensor:
        """Labels, or a few numbers."""
        if self.labels:
            return torch.arange(min(self.num_outputs, 8))
        return torch.randn(3, self.num_outputs, generator=torch.Generator().manual_seed(0))

    def expected_log_prob(
        self,
        law: OrbitMarginal | OrbitMoments,
        targets: Float[Tensor, "N C"],
        num_samples: int = 0,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, " N"]:
        """Closed form: −½ Σ_c [ log 2πσ² + E(y − f)²/σ² ]."""
        return self._log_density(law.expected_squared_error(targets)).sum(-1)

    @torch.no_grad()
    def expected_derivatives(
        self,
        law: OrbitMarginal | OrbitMoments,
        targets: Float[Tensor, "N C"],
        num_samples: int = 0,
        generator: torch.Generator | None = None,
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N 1"]]:
        """∂ = (y − μ)/σ² and β = 1/σ², the same for all outputs."""
        gradient = (targets - law.mean) / self.noise_variance
        return gradient, (1 / self.noise_variance).to(gradient.dtype).expand(len(gradient), 1)

    @torch.no_grad()
    def predictive_mean(
        self, law: OrbitMarginal, num_samples: int = 0, generator: torch.Generator | None = None
    ) -> Float[Tensor, "N C"]:
        """μ; for labels, p(c) ∝ N(e_c; μ, diag(var + σ²)) over the one-hot codes e_c."""
        return self._log_code_probabilities(law.mean, self.predictive_variance(law)).exp() if self.labels else law.mean

    @torch.no_grad()
    def predictive_variance(self, law: OrbitMarginal) -> Float[Tensor, "N C"]:
        """Var[y] = var + σ²."""
        return law.var + self.noise_variance

    @torch.no_grad()
    def log_predictive(
        self,
        law: OrbitMarginal,
        targets: Float[Tensor, "N C"],
        num_samples: int = 0,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, " N"]:
        """log N(y; μ, var + σ²); for labels, the log probability of the label, comparable with Softmax."""
        if self.labels:
            return (self._log_code_probabilities(law.mean, self.predictive_variance(law)) * targets).sum(-1)
        var = self.predictive_variance(law)
        return -0.5 * ((2 * math.pi * var).log() + (targets - law.mean).square() / var).sum(-1)

    def _log_code_probabilities(self, mean: Tensor, variance: Tensor) -> Tensor:
        # log N(e_c; μ, s) differs between codes only in output c: [μ_c² − (1 − μ_c)²] / 2s_c = (2μ_c − 1) / 2s_c.
        return ((2 * mean - 1) / (2 * variance)).log_softmax(-1)
