"""``orbitune predict``: use a trained model."""

import csv
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer

from orbitune.commands.options import Json
from orbitune.commands.show import show_result
from orbitune.data import load_dataset
from orbitune.fitting import read_result
from orbitune.saving import load_model
from orbitune.training.evaluation import class_probabilities


def predict(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    data: Annotated[
        str, typer.Argument(help="A known data set, a folder of images, or an .npz; its test part if any.")
    ],
    out: Annotated[Path | None, typer.Option(help="Directory for predictions.csv; by default the run's.")] = None,
    orbit_size: Annotated[int, typer.Option(min=1, help="Orbit points averaged per image.")] = 32,
    as_json: Json = False,
) -> None:
    """Predict labels with a trained model: predictions.csv has the label and the probability of every class.

    Example: `orbitune predict run mydata.npz --out predictions`
    """
    started = time.monotonic()
    model, structure = load_model(run)
    dataset = load_dataset(data)
    structure.check_images(dataset)
    split = "test" if dataset.num_test else "train"
    images, labels = dataset.images(split), dataset.labels(split)
    probabilities = class_probabilities(model, images, orbit_size, torch.Generator().manual_seed(0))
    predicted = probabilities.argmax(1)
    directory = out or run
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "predictions.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["index", "predicted", *(f"p({name})" for name in structure.class_names)])
        for index, row in enumerate(probabilities.tolist()):
            label = structure.class_names[int(predicted[index])]
            writer.writerow([index, label, *(f"{value:.6f}" for value in row)])
    names_agree = dataset.class_names == structure.class_names
    accuracy = (predicted == labels).double().mean().item() if names_agree else None
    result = replace(read_result(run), test_accuracy=accuracy, seconds=time.monotonic() - started)
    show_result(result, directory, as_json)
