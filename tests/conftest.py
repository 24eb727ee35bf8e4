"""Shapes and types in signatures are checked while testing, and only then."""

from jaxtyping import install_import_hook

# Before the first import of orbitune.
install_import_hook("orbitune", "beartype.beartype")

import pytest  # noqa: E402
import torch  # noqa: E402

# The workers of pytest-xdist share the cores; threads on top of them only get in each other's way.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def same_first_weights() -> None:
    """New networks take their weights from PyTorch's global generator, whichever tests ran before on this worker."""
    torch.manual_seed(0)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
