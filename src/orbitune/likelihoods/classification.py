"""Labels: several classes (Softmax) or two (Bernoulli)."""

from typing import ClassVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import logsigmoid, one_hot

from orbitune.errors import InputError
from orbitune.likelihoods.base import FactorizedLikelihood, Likelihood


def check_labels(targets: Shaped[Tensor, "N *T"], num_classes: int) -> Int[Tensor, " N"]:
    """Integer labels in 0 … num_classes−1, or an error that says what is wrong with them."""
    if targets.ndim != 1 or targets.is_floating_point() or targets.is_complex():
        raise InputError(
            f"labels must be integers of shape (N,), got {targets.dtype} of shape {tuple(targets.shape)}. "
            "For one-hot codes use targets.argmax(-1)"
        )
    labels = targets.long()
    if len(labels) and not (int(labels.min()) >= 0 and int(labels.max()) < num_classes):
        raise InputError(
            f"labels must lie in 0 … {num_classes - 1} for {num_classes} classes, "
            f"got values from {int(labels.min())} to {int(labels.max())}"
        )
    return labels


class Softmax(Likelihood):
    """p(y = c | f) = exp f_c / Σ_j exp f_j for labels 0 … C−1."""

    prior_variance: ClassVar[float] = 20.0  # certainty needs logits of several units

    def encode(self, targets: Shaped[Tensor, "N *T"]) -> Int[Tensor, " N"]:
        """Checked integer labels."""
        return check_labels(targets, self.num_outputs)

    def log_prob(self, f: Float[Tensor, "N C"], targets: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """f_y − log Σ_c exp f_c."""
        return f.log_softmax(-1).gather(-1, targets[:, None]).squeeze(-1)

    def mean_log_prob(self, f: Float[Tensor, "N C"]) -> Float[Tensor, " N"]:
        """Over all classes."""
        return f.log_softmax(-1).mean(-1)

    def conditional_mean(self, f: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """Class probabilities."""
        return f.softmax(-1)

    def derivatives(
        self, f: Float[Tensor, "N C"], targets: Int[Tensor, " N"]
    ) -> tuple[Float[Tensor, "N C"], Float[Tensor, "N C"]]:
        """∂ = onehot(y) − p and β = p(1 − p)."""
        p = f.softmax(-1)
        return one_hot(targets, self.num_outputs) - p, p * (1 - p)

    def example_targets(self) -> Tensor:
        """A few labels; classes are exchangeable."""
        return torch.arange(min(self.num_outputs, 8))


class Bernoulli(FactorizedLikelihood):
    """p(y = 1 | f) = 1 / (1 + exp(−f)) for targets 0 and 1."""

    prior_variance: ClassVar[float] = 20.0  # as for Softmax

    def __init__(self, num_outputs: int = 1):
        super().__init__(num_outputs)

    def encode(self, targets: Shaped[Tensor, "N *T"]) -> Float[Tensor, "N C"]:
        """Zeros and ones (N,) or (N, C) as floats."""
        encoded = super().encode(targets)
        other = encoded[(encoded != 0) & (encoded != 1)]
        if len(other):
            raise InputError(f"targets of Bernoulli must be 0 or 1; {len(other)} are not, for example {other[0]:g}")
        return encoded

    def log_prob_each(self, f: Float[Tensor, "N C"], targets: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """log σ((2y − 1) f)."""
        return logsigmoid((2 * targets - 1) * f)

    def mean_log_prob(self, f: Float[Tensor, "N C"]) -> Float[Tensor, " N"]:
        """Of zeros and ones, summed over outputs."""
        return ((logsigmoid(f) + logsigmoid(-f)) / 2).sum(-1)

    def conditional_mean(self, f: Float[Tensor, "N C"]) -> Float[Tensor, "N C"]:
        """The probability of a one."""
        return f.sigmoid()

    def example_targets(self) -> Tensor:
        """Zeros and ones."""
        return torch.tensor([0.0, 1.0])[:, None].expand(2, self.num_outputs)
