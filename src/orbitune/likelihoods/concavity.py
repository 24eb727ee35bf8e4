"""The sample bound rests on Jensen's inequality, hence on log-concavity: probe it before trusting it."""

import copy

import torch

from orbitune.errors import NotLogConcaveError
from orbitune.likelihoods.base import Likelihood


@torch.no_grad()
def check_log_concave(likelihood: Likelihood, num_pairs: int = 512) -> None:
    """Refuse a likelihood with log p(y | (f+f')/2) < ½[log p(y | f) + log p(y | f')] anywhere that is looked.

    Looks at midpoints of random pairs on scales 1 to 1000 around zero, for the likelihood's example targets. The seed
    is fixed: a likelihood is refused always or never. Parameters of the likelihood are probed at their current values.
    """
    likelihood = copy.deepcopy(likelihood).cpu().double()
    targets = likelihood.encode(likelihood.example_targets())
    targets = targets.double() if targets.is_floating_point() else targets
    generator = torch.Generator().manual_seed(0)
    for scale in (1.0, 10.0, 100.0, 1000.0):
        shape = (2, num_pairs, len(targets), likelihood.num_outputs)
        f, f_prime = scale * torch.randn(shape, generator=generator, dtype=torch.float64)  # (K, E, C) each
        at_f, at_f_prime, at_middle = (
            likelihood.log_prob_of_points(points, targets) for points in (f, f_prime, (f + f_prime) / 2)
        )  # (K, E)
        if at_middle.isnan().any():
            raise NotLogConcaveError(
                f"{type(likelihood).__name__}: log p(y | f) is NaN for some real f; it must be concave on all of them"
            )
        chord = (at_f + at_f_prime) / 2
        gap = at_middle - chord
        if (gap < -1e-9 * (1 + chord.abs())).any():
            k, e = divmod(int(gap.nan_to_num(nan=torch.inf).argmin()), len(targets))
            raise NotLogConcaveError(
                f"{type(likelihood).__name__} is not log-concave in f, so the sample bound would not be a lower bound "
                f"(Jensen's inequality fails). Counter-example, y = {_show(targets[e])}: log p at f = {_show(f[k, e])} "
                f"is {at_f[k, e]:.4g}, at f = {_show(f_prime[k, e])} it is {at_f_prime[k, e]:.4g}, but half-way it is "
                f"only {at_middle[k, e]:.4g} < {chord[k, e]:.4g}. "
                "Log-concave choices: Gaussian, Softmax, Bernoulli, Poisson"
            )


def _show(value: torch.Tensor) -> str:
    numbers = ", ".join(f"{x:.3g}" for x in value.flatten().tolist())
    return f"({numbers})" if value.numel() > 1 else numbers
