"""Predictions for data that are named when the report is made."""

from dataclasses import replace

import torch

from orbitune.config import FitConfig
from orbitune.data import load_dataset
from orbitune.errors import InputError
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.report.predictions import Predictions, collect_predictions
from orbitune.saving import Structure
from orbitune.training.evaluation import class_probabilities, without_orbit


def predict_dataset(
    model: InvariantGP | OrbitNetwork, structure: Structure, data: str, config: FitConfig
) -> tuple[Predictions, str]:
    """Probabilities of the test images of a data set (of all its images if it has no test part), and what they are."""
    dataset = load_dataset(data, seed=config.seed, resize=config.resize)
    structure.check_shape(dataset.image_shape)
    if dataset.class_names != structure.class_names:
        raise InputError(
            f"the model knows the classes {', '.join(structure.class_names)}; {dataset.name} has "
            f"{', '.join(dataset.class_names)}. Scores need the same classes in the same order"
        )
    source = f"the test images of {dataset.name}"
    if dataset.x_test is None:
        dataset = replace(dataset, x_test=dataset.x_train, y_test=dataset.y_train)
        source = f"all images of {dataset.name}, which has no test part: if the model learned from them, too good"
    images = dataset.stored("test")
    invariant, single = (
        class_probabilities(each, images, orbit_size, torch.Generator().manual_seed(config.seed))
        for each, orbit_size in ((model, config.predict_orbit_size), (without_orbit(model), 1))
    )
    return collect_predictions(dataset, invariant, single, None), source
