"""The tolerance of a Monte-Carlo test is its Monte-Carlo error."""

import torch


def assert_unbiased(estimates, truth, num_errors=4):
    """The mean over axis 0 of independent estimates lies within 4 of its own standard errors of the truth."""
    standard_error = estimates.std(0) / len(estimates) ** 0.5
    z = (estimates.mean(0) - truth).abs() / standard_error
    assert z.max() < num_errors, f"off by up to {z.max():.1f} standard errors"


def assert_mean_below(smaller, larger, num_errors=4):
    """Paired or not, the mean of ``smaller`` is below that of ``larger`` by more than chance."""
    larger = torch.as_tensor(larger, dtype=smaller.dtype)
    variance = smaller.var() / len(smaller) + (larger.var() / len(larger) if larger.ndim else 0)
    assert larger.mean() - smaller.mean() > num_errors * variance**0.5
