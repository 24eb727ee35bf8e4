"""From data and a configuration to a run directory with a trained model, its scores and its pictures."""

import json
import tomllib
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from orbitune.config import FitConfig, to_toml
from orbitune.data import ImageDataset
from orbitune.errors import CheckpointError
from orbitune.learners import PlainNetwork, Problem
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.provenance import commit, machine, write_json
from orbitune.report.plots import save_pictures
from orbitune.saving import make_backbone, make_likelihood, make_orbit, save_model
from orbitune.training import Progress, Run
from orbitune.training.evaluation import accuracy

CONFIG, RESULT = "config.toml", "result.json"


@dataclass(frozen=True)
class FitResult:
    """What a fit reports; written to result.json.

    Accuracies are None where there is no test set (or no baseline), the evidence where the learner has none.
    """

    ranges: dict[str, tuple[float, float]]
    test_accuracy: float | None
    plain_network_accuracy: float | None
    elbo_per_datum: float | None
    seconds: float


def fit(
    config: FitConfig, dataset: ImageDataset, directory: Path, *, resume: bool = False, progress: Progress | None = None
) -> FitResult:
    """Learn from the training images of a data set; the test images are only used to score the result.

    Args:
        config: what to do.
        dataset: images and labels; ``config.train_size`` takes a subset.
        directory: the run directory: configuration, checkpoints, history, model, result, pictures.
        resume: continue an interrupted run in the directory; the outcome is as if it had not been interrupted.
        progress: who is told what happens.
    """
    run = Run(directory, seed=config.seed, resume=resume, progress=progress)
    (directory / CONFIG).write_text(to_toml(config))
    with run.active():
        if config.train_size is not None:
            dataset = dataset.subset(config.train_size, generator=run.generator)
        num_classes = dataset.num_classes
        problem = Problem(
            dataset.images("train"),
            dataset.labels("train"),
            make_orbit(config.orbit),
            make_likelihood(config.likelihood, num_classes),
            lambda: make_backbone(config.backbone, dataset.image_shape),
        )
        plain_accuracy = None
        if config.baseline_epochs:
            plain = PlainNetwork(epochs=config.baseline_epochs).learn(problem, run).model
            plain_accuracy = run.once("plain accuracy", lambda: _score(plain, dataset, 1, run))
            run.untrack("plain network")
        outcome = config.settings.learn(problem, run)
        run.restore()  # if the run was finished before, nothing else has put its weights back
        model = outcome.model
        test_accuracy = run.once("accuracy", lambda: _score(model, dataset, config.predict_orbit_size, run))
        result = FitResult(model.orbit.ranges(), test_accuracy, plain_accuracy, outcome.elbo_per_datum, run.seconds)
        save_model(
            directory,
            model,
            image_shape=dataset.image_shape,
            class_names=dataset.class_names,
            likelihood=config.likelihood,
            backbone=config.backbone,
        )
        write_result(directory, result, config, dataset)
        save_pictures(directory, model.orbit, problem.inputs, dataset.class_names, problem.targets)
        run.save()
    return result


def _score(model: InvariantGP | OrbitNetwork, dataset: ImageDataset, orbit_size: int, run: Run) -> float | None:
    if dataset.x_test is None:
        return None
    return accuracy(model, dataset.images("test"), dataset.labels("test"), orbit_size, run.generator)


def write_result(directory: Path, result: FitResult, config: FitConfig, dataset: ImageDataset) -> None:
    """result.json: the result, how it was asked for, the data it is about, commit and machine."""
    record = {
        **asdict(result),
        "config": tomllib.loads(to_toml(config)),
        "seed": config.seed,
        "data": dataset.name,
        "note": dataset.note,
        "num_train": dataset.num_train,
        "num_test": dataset.num_test,
        "image_shape": dataset.image_shape,
        "commit": commit(),
        "machine": machine(),
    }
    write_json(directory / RESULT, record)


def read_result(directory: Path) -> FitResult:
    """The result of a finished run."""
    try:
        record = json.loads((directory / RESULT).read_text())
        return FitResult(**{field.name: record[field.name] for field in fields(FitResult)})
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{directory} holds no finished run ({RESULT}: {error})") from error
