"""What a report needs to know of the data: test probabilities and a few images, in one small file of the run."""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from orbitune.data import ImageDataset
from orbitune.errors import CheckpointError, InputError

PREDICTIONS = "predictions.npz"
NUM_EXAMPLES, NUM_UNCERTAIN = 6, 12
_THUMBNAIL = 96  # pixels: the most uncertain images are only looked at


@dataclass(frozen=True, eq=False)
class Predictions:
    """Probabilities of the test images by several models, and images to show.

    Attributes:
        labels: (T,) classes of the test images; T = 0 without a test set.
        invariant: (T, C) the model, averaged over the orbit.
        single: (T, C) the same model looking once at each image as it is.
        plain: (T, C) the plain network; None if none was trained.
        uncertain: (K,) which test images the model is least sure about, the least sure first.
        uncertain_images: (K, Ch, h, w) these, not larger than a thumbnail.
        example_images, example_labels: (E, Ch, H, W), (E,) images of different classes, at full size: test images, or
            training images where there is no test set.
    """

    labels: np.ndarray
    invariant: np.ndarray
    single: np.ndarray
    plain: np.ndarray | None
    uncertain: np.ndarray
    uncertain_images: np.ndarray
    example_images: np.ndarray
    example_labels: np.ndarray

    @property
    def num_test(self) -> int:
        """T."""
        return len(self.labels)

    def check_images(self, image_shape: tuple[int, int, int], directory: Path) -> None:
        """Raise if the images are not of the shape of the model in the same directory."""
        if self.example_images.shape[1:] != image_shape:
            raise InputError(
                f"the predictions in {directory} are about images of shape {self.example_images.shape[1:]}, its "
                f"model about {image_shape}: files of different runs? Give the data instead (orbitune report RUN DATA)"
            )


def collect_predictions(
    dataset: ImageDataset, invariant: Tensor | None, single: Tensor | None, plain: Tensor | None
) -> Predictions:
    """Put probabilities (T, C) of the test images together with labels and images; None without a test set."""
    split = "train" if invariant is None else "test"
    examples = _examples(dataset.labels(split))
    example_images, example_labels = dataset.images(split, examples), dataset.labels(split, examples)
    if invariant is None or single is None:
        empty, no_images = np.zeros((0, dataset.num_classes), np.float32), np.zeros((0, *dataset.image_shape), np.uint8)
        scores = (np.zeros(0, np.int64), empty, empty, None, np.zeros(0, np.int64), no_images)
        return Predictions(*scores, _bytes(example_images), example_labels.numpy())
    uncertain = entropy(invariant.numpy()).argsort()[::-1][:NUM_UNCERTAIN].copy()
    return Predictions(
        dataset.labels("test").numpy(),
        _single_precision(invariant),
        _single_precision(single),
        None if plain is None else _single_precision(plain),
        uncertain,
        _bytes(_thumbnails(dataset.images("test", torch.from_numpy(uncertain)))),
        _bytes(example_images),
        example_labels.numpy(),
    )


def entropy(probabilities: np.ndarray) -> np.ndarray:
    """−Σ_c p_c log p_c of each row, in nats: 0 is sure, log C is clueless."""
    p = probabilities.astype(np.float64)
    return -(p * np.log(np.maximum(p, np.finfo(np.float64).tiny))).sum(1)


def write_predictions(directory: Path, predictions: Predictions) -> None:
    """predictions.npz in a run directory, replaced atomically."""
    arrays = {field.name: getattr(predictions, field.name) for field in fields(Predictions)}
    unfinished = directory / (PREDICTIONS + ".tmp")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, **{name: array for name, array in arrays.items() if array is not None})
    os.replace(unfinished, directory / PREDICTIONS)


def read_predictions(directory: Path) -> Predictions | None:
    """What :func:`write_predictions` wrote; None if the run has no such file."""
    path = directory / PREDICTIONS
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return Predictions(plain=arrays.pop("plain", None), **arrays)
    except (OSError, ValueError, TypeError, EOFError, BadZipFile) as error:
        raise CheckpointError(
            f"{path} is damaged ({error}). Give the data instead (orbitune report RUN DATA)"
        ) from error


def _examples(labels: Tensor) -> Tensor:
    """The first image of each class, then the second of each, …, as many as are shown."""
    members = [(labels == label).nonzero()[:, 0].tolist() for label in labels.unique()]
    in_turn = [indices[rank] for rank in range(NUM_EXAMPLES) for indices in members if rank < len(indices)]
    return torch.tensor(in_turn[:NUM_EXAMPLES])


def _thumbnails(images: Tensor) -> Tensor:
    """Images (K, Ch, H, W) shrunk to fit a thumbnail; smaller ones stay as they are."""
    height, width = images.shape[-2:]
    factor = min(1.0, _THUMBNAIL / max(height, width))
    size = (max(1, round(factor * height)), max(1, round(factor * width)))
    return torch.nn.functional.interpolate(images, size, mode="bilinear", antialias=True) if factor < 1 else images


def _bytes(images: Tensor) -> np.ndarray:
    return (images.clamp(0, 1) * 255).round().to(torch.uint8).numpy()


def _single_precision(probabilities: Tensor) -> np.ndarray:
    return probabilities.cpu().to(torch.float32).numpy()
