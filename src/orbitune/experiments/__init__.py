"""One module per table or figure of the paper, each with its ``EXPERIMENT``; and one on ranges we planted ourselves.

``experiment.py`` says what an experiment is, ``rows.py`` computes its rows, ``summary.py`` compares them with the
paper, ``page.py`` writes them up.
"""

from orbitune.experiments import (
    cifar10,
    embeddings,
    fig1,
    max_likelihood,
    mnist_subsets,
    parameterisation,
    pcam,
    planted,
    rotmnist,
    timing,
    variances,
)
from orbitune.experiments.experiment import Experiment

_MODULES = (
    fig1,
    embeddings,
    parameterisation,
    variances,
    mnist_subsets,
    rotmnist,
    timing,
    pcam,
    cifar10,
    max_likelihood,
    planted,
)
EXPERIMENTS: dict[str, Experiment] = {module.EXPERIMENT.name: module.EXPERIMENT for module in _MODULES}
