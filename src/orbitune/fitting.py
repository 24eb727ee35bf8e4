"""From data and a configuration to a run directory with a trained model, its scores and its pictures."""

import json
import tomllib
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from orbitune.config import FitConfig, to_toml
from orbitune.data import ImageDataset
from orbitune.errors import CheckpointError
from orbitune.learners import PlainNetwork, Problem
from orbitune.model import InvariantGP
from orbitune.network import OrbitNetwork
from orbitune.provenance import commit, machine, write_json
from orbitune.report.plots import save_pictures
from orbitune.report.predictions import collect_predictions, write_predictions
from orbitune.saving import make_backbone, make_likelihood, make_orbit, save_model
from orbitune.training import Progress, Run
from orbitune.training.evaluation import class_probabilities, share_correct, without_orbit

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
    commit()  # of now, for the record at the end
    run = Run(directory, seed=config.seed, resume=resume, progress=progress)
    (directory / CONFIG).write_text(to_toml(config))
    with run.active():
        if config.train_size is not None:
            dataset = dataset.subset(config.train_size, generator=run.generator)
        num_classes = dataset.num_classes
        problem = Problem(
            dataset.stored("train"),
            dataset.labels("train"),
            make_orbit(config.orbit),
            make_likelihood(config.likelihood, num_classes),
            lambda: make_backbone(config.backbone, dataset.image_shape),
        )
        config.settings.check(problem)
        plain, baseline = None, _baseline(config)
        before = baseline.plan(len(problem.inputs)) if baseline else []
        run.plan([*before, *config.settings.plan(len(problem.inputs))])
        if baseline:
            network = baseline.learn(problem, run).model
            plain = run.once("plain predictions", lambda: _predict(network, dataset, 1, run.generator))
            run.untrack("plain network")
        outcome = config.settings.learn(problem, run)
        run.restore()  # if the run was finished before, nothing else has put its weights back
        model = outcome.model
        predict = partial(_predict, model, dataset, config.predict_orbit_size, run.generator)
        invariant = run.once("predictions", predict)
        single = _predict(without_orbit(model), dataset, 1, torch.Generator().manual_seed(config.seed))
        accuracies = (_accuracy(invariant, dataset), _accuracy(plain, dataset))
        result = FitResult(model.orbit.ranges(), *accuracies, outcome.elbo_per_datum, run.seconds)
        save_model(
            directory,
            model,
            image_shape=dataset.image_shape,
            class_names=dataset.class_names,
            likelihood=config.likelihood,
            backbone=config.backbone,
        )
        write_predictions(directory, collect_predictions(dataset, invariant, single, plain))
        write_result(directory, result, config, dataset)
        save_pictures(directory, model.orbit, problem.inputs, dataset.class_names, problem.targets)
        run.save()
    return result


def _baseline(config: FitConfig) -> PlainNetwork | None:
    """The plain network beside a fit; none beside one that is nothing else."""
    wanted = config.baseline_epochs and not isinstance(config.settings, PlainNetwork)
    return PlainNetwork(epochs=config.baseline_epochs) if wanted else None


def _predict(
    model: InvariantGP | OrbitNetwork, dataset: ImageDataset, orbit_size: int, generator: torch.Generator
) -> Tensor | None:
    """Class probabilities (T, C) of the test images; None without any."""
    if dataset.x_test is None:
        return None
    return class_probabilities(model, dataset.stored("test"), orbit_size, generator)


def _accuracy(probabilities: Tensor | None, dataset: ImageDataset) -> float | None:
    return None if probabilities is None else share_correct(probabilities, dataset.labels("test"))


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
    record = read_record(directory)
    try:
        return FitResult(**{field.name: record[field.name] for field in fields(FitResult)})
    except KeyError as error:
        raise CheckpointError(f"{directory / RESULT} is damaged: it lacks {error}") from error


def read_record(directory: Path) -> dict[str, Any]:
    """All of a finished run's result.json: the result, and what it is about."""
    if not directory.is_dir():
        raise CheckpointError(f"there is no run directory {directory}")
    try:
        return json.loads((directory / RESULT).read_text())
    except FileNotFoundError as error:
        advice = (
            f"the run is unfinished: continue it with `orbitune fit --resume --out {directory}`"
            if (directory / CONFIG).exists()
            else "it is not the directory of a run"
        )
        raise CheckpointError(f"{directory} holds no finished run ({RESULT} is missing): {advice}") from error
    except ValueError as error:
        raise CheckpointError(f"{directory / RESULT} is damaged: {error}") from error
