"""``orbitune predict``: use a trained model."""

import csv
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from jaxtyping import Float
from torch import Tensor

from orbitune.commands.options import Json
from orbitune.data import load_dataset
from orbitune.data.catalog import known_name
from orbitune.data.folder import image_names, is_unsorted, load_images
from orbitune.data.image_files import SUFFIXES
from orbitune.fitting import read_record, read_result
from orbitune.inputs import StoredImages
from orbitune.saving import Structure, load_model
from orbitune.training.evaluation import class_probabilities, share_correct

TABLE = "predictions.csv"


def predict(
    run: Annotated[Path, typer.Argument(help="Directory of a finished run.")],
    data: Annotated[
        str,
        typer.Argument(
            help="An image, a folder of images, a folder like those to learn from, an .npz, or a known data set (of "
            "the last three, the test part if there is one)."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Directory for predictions.csv; by default the run's.")] = None,
    orbit_size: Annotated[int, typer.Option(min=1, help="Orbit points averaged per image.")] = 32,
    as_json: Json = False,
) -> None:
    """Predict labels with a trained model: predictions.csv has the label and the probability of every class.

    Examples:

    `orbitune predict run new-photos/`

    `orbitune predict run mydata.npz --out predictions`
    """
    started = time.monotonic()
    model, structure = load_model(run)
    config = read_record(run)["config"]
    question = read_question(data, structure, seed=config.get("seed", 0), resize="resize" in config)
    probabilities = class_probabilities(model, question.images, orbit_size, torch.Generator().manual_seed(0))
    directory = out or run
    directory.mkdir(parents=True, exist_ok=True)
    write_table(directory / TABLE, question.names, structure.class_names, probabilities)
    known = question.labels is not None and question.class_names == structure.class_names
    accuracy = share_correct(probabilities, question.labels) if known else None
    result = replace(read_result(run), test_accuracy=accuracy, seconds=time.monotonic() - started)
    if as_json:
        typer.echo(json.dumps(asdict(result)))
        return
    counts = Counter(structure.class_names[i] for i in probabilities.argmax(1).tolist())
    typer.echo(f"{len(probabilities):,} images: " + ", ".join(f"{num} {name}" for name, num in counts.most_common(10)))
    if accuracy is not None:
        typer.echo(f"Accuracy, by the names of their folders or their labels: {100 * accuracy:.1f} %")
    typer.echo(f"Labels and probabilities: {directory / TABLE}")


@dataclass(frozen=True)
class Question:
    """Images to predict: (N, Ch, H, W), what to call each, and their labels if somebody knows them."""

    images: StoredImages
    names: list[str]
    labels: Tensor | None = None
    class_names: tuple[str, ...] = ()


def read_question(data: str, structure: Structure, *, seed: int, resize: bool) -> Question:
    """The images, brought to the size of the model if those it learned from were brought to a size.

    The seed is that of the run: of sets that are made by chance, it decides which images are for testing.
    """
    channels, *size = structure.image_shape
    height_width = (size[0], size[1]) if resize else None
    path = Path(data).expanduser()
    on_disk = known_name(data) is None
    if on_disk and (path.suffix.lower() in SUFFIXES if path.is_file() else is_unsorted(path)):
        images, names = load_images(path, channels=channels, resize=height_width)
        structure.check_shape(tuple(images.shape[1:]))
        return Question(images, names)
    dataset = load_dataset(data, seed=seed, resize=height_width)
    split = "test" if dataset.num_test else "train"
    images, labels = dataset.stored(split), dataset.labels(split)
    if images.shape[1] == 1:  # grey images are fine where colour is expected
        images = StoredImages(images.pixels.expand(-1, channels, -1, -1))
    structure.check_shape(tuple(images.shape[1:]))
    names = image_names(path, split) if on_disk and path.is_dir() else [str(i) for i in range(len(images))]
    return Question(images, names, labels, dataset.class_names)


def write_table(
    path: Path, names: Sequence[str], class_names: Sequence[str], probabilities: Float[Tensor, "N C"]
) -> None:
    """One line per image: its name, the most probable class, and the probability of every class."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "predicted", *(f"p({name})" for name in class_names)])
        for name, row in zip(names, probabilities, strict=True):
            writer.writerow([name, class_names[int(row.argmax())], *(f"{value:.6f}" for value in row.tolist())])
