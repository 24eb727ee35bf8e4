"""Random numbers from an explicit generator, wherever the model lives.

Numbers are drawn on the generator's device and moved to that of ``like``: a CPU generator gives the same run on every
machine.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor


def normal(shape: Sequence[int], generator: torch.Generator | None, like: Tensor) -> Tensor:
    """Standard normal numbers with the dtype and device of ``like``."""
    return torch.randn(*shape, generator=generator, dtype=like.dtype, device=device_of(generator)).to(like.device)


def uniform(shape: Sequence[int], generator: torch.Generator | None, like: Tensor) -> Tensor:
    """Uniform numbers in [0, 1) with the dtype and device of ``like``."""
    return torch.rand(*shape, generator=generator, dtype=like.dtype, device=device_of(generator)).to(like.device)


def symmetric_beta(num: int, concentration: float, generator: torch.Generator | None, like: Tensor) -> Tensor:
    """``num`` numbers in [0, 1] from Beta(α, α), with the dtype and device of ``like``: uniform for α = 1."""
    alpha = torch.tensor(concentration, dtype=torch.float64)
    with nullcontext() if generator is None else seeded(generator):
        return torch.distributions.Beta(alpha, alpha).sample((num,)).to(like)


def permutation(num: int, generator: torch.Generator | None, device: torch.device) -> Tensor:
    """A random order of 0 … num−1."""
    return torch.randperm(num, generator=generator, device=device_of(generator)).to(device)


def some_of(num: int, most: int, generator: torch.Generator | None) -> Tensor | slice:
    """An index of at most ``most`` of 0 … num−1, at random: data often come class by class."""
    return slice(None) if num <= most else permutation(num, generator, torch.device("cpu"))[:most]


@contextmanager
def seeded(generator: torch.Generator) -> Generator[None]:
    """Let code that only knows torch's global generator (initial weights, dropout) draw from ours, leaving no trace."""
    seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def device_of(generator: torch.Generator | None) -> torch.device:
    """Where a generator draws; without one, torch's global CPU generator is meant."""
    return torch.device("cpu") if generator is None else generator.device
