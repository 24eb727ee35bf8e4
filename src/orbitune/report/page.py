"""The report: one self-contained HTML page about a run, made from its directory."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jinja2

from orbitune.config import make_config, read_config
from orbitune.errors import InputError
from orbitune.fitting import CONFIG, read_record, read_result
from orbitune.report import sections
from orbitune.report.history import warnings_of
from orbitune.report.plots import read_history
from orbitune.report.predictions import Predictions, read_predictions
from orbitune.report.scores import Scores
from orbitune.report.scoring import predict_dataset
from orbitune.report.words import verdict_sentences
from orbitune.saving import load_model

REPORT = "report.html"


@dataclass(frozen=True)
class Report:
    """A written report: where it is, and its main numbers."""

    path: Path
    verdict: str
    ranges: dict[str, tuple[float, float]]
    scores: dict[str, Scores]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        scores = {name: {k: v for k, v in asdict(s).items() if k != "bins"} for name, s in self.scores.items()}
        return {"report": str(self.path), "verdict": self.verdict, "ranges": self.ranges, "scores": scores}


def write_report(directory: Path, out: Path | None = None, data: str | None = None) -> Report:
    """Write the report of a finished run.

    Args:
        directory: the run.
        out: the HTML file; by default report.html in the run directory.
        data: a data set to score the model on, as in ``orbitune fit``; by default the test predictions that the fit has
            left in the run directory.
    """
    path = out or directory / REPORT
    if path.is_dir():
        raise InputError(f"--out names the report's file, but {path} is a directory: give {path / REPORT}")
    result, record = read_result(directory), read_record(directory)
    model, structure = load_model(directory)
    config = make_config(read_config(directory / CONFIG), str(directory / CONFIG))
    history = read_history(directory)
    learned = config.learned_parameters
    if data is None:
        predictions, source = read_predictions(directory), f"the test images of {record['data']}"
    else:
        predictions, source = predict_dataset(model, structure, data, config)
    if predictions is not None:
        predictions.check_images(structure.image_shape, directory)

    sentences = verdict_sentences(result.ranges, learned)
    scores = sections.all_scores(predictions)
    examples = sections.examples_of(model, predictions, structure.class_names, config.predict_orbit_size)
    page = {
        "run": directory.resolve().name,
        "headline": sentences[0],
        "details": sentences[1:],
        "figures": sections.key_figures(scores, result.seconds),
        "ranges": sections.describe_ranges(result.ranges, learned, history, structure.image_shape),
        "examples": examples,
        "num_draws": sections.NUM_DRAWS,
        "sweeps": sections.sweep_examples(model, examples, structure),
        "scores": sections.describe_scores(scores, predictions, structure.class_names),
        "source": source,
        "missing": _why_no_scores(predictions),
        "objectives": sections.describe_objectives(history),
        "facts": sections.facts(record, config, result),
        "config": (directory / CONFIG).read_text(),
        "warnings": warnings_of(history),
    }
    _write(path, _environment().get_template("page.html").render(page))
    return Report(path, " ".join(sentences), result.ranges, {name: s for name, s, _ in scores})


def _why_no_scores(predictions: Predictions | None) -> str:
    if predictions is None:
        return (
            "This run has left no predictions to score (it comes from an earlier version). "
            "Name the data to fill this section: orbitune report RUN DATA."
        )
    return (
        ""
        if predictions.num_test
        else (
            "There was no test set, so nothing here could be measured on images the model has not learned from. "
            "Name labelled images to fill this section: orbitune report RUN DATA."
        )
    )


def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(Path(__file__).with_name("templates"))
    return jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def _write(path: Path, html: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(html, encoding="utf-8")
    os.replace(unfinished, path)
