"""Rows that are fits: a composition of orbit, network, likelihood and learner, as ``orbitune fit`` would run it."""

import json
from collections.abc import Sequence
from dataclasses import replace

from orbitune import fitting
from orbitune.config import FitConfig
from orbitune.data import load_dataset
from orbitune.experiments.experiment import Row, Task
from orbitune.experiments.plots import ranges_over_time
from orbitune.learners import LEARNERS, Learner
from orbitune.report.plots import read_history

DATA_SEED = 0  # the data set is the same for every row and seed; what is drawn from it may differ


def fit_config(learner: Learner, **options: object) -> FitConfig:
    """A fit by a learner, without the plain network beside it (that is a row of its own)."""
    (name,) = (name for name, kind in LEARNERS.items() if type(learner) is kind)
    return FitConfig(learner=name, settings=learner, baseline_epochs=0.0, **options)  # ty: ignore[invalid-argument-type]


def compute_fit(task: Task) -> Row:
    """Fit in the task's work directory, going on where it was interrupted; accuracy, ranges, evidence, cost, data."""
    config: FitConfig = replace(task.config, seed=task.seed)
    dataset = load_dataset(config.data, seed=DATA_SEED)
    fitting.fit(config, dataset, task.work, resume=True, progress=task.progress)
    result = json.loads((task.work / fitting.RESULT).read_text())
    # Provenance is the row's own; the plain network has a row of its own.
    row = {key: value for key, value in result.items() if key not in ("commit", "machine", "plain_network_accuracy")}
    if "rotation" in result["ranges"]:
        row["rotation_half_width"] = half_width(row, "rotation")
    if any(low != high for low, high in result["ranges"].values()):
        task.keep_picture(task.work / "orbit.png")
    return row | {"ranges_over_time": ranges_over_time(read_history(task.work))}


def half_width(row: Row, name: str) -> float:
    """Half the width of a learned range."""
    low, high = row["ranges"][name]
    return (high - low) / 2


def other_ranges(records: Sequence[Row], name: str = "rotation") -> list[str]:
    """What became of the ranges beside the one that the table shows."""
    sentences = []
    for record in (r for r in records if r.get("ranges")):
        others = {other: half_width(record, other) for other in record["ranges"] if other != name}
        widest = max(others, key=others.__getitem__)
        row = f"{record['model']}, seed {record['seed']}"
        sentences.append(f"{row}: the other half-widths are at most {others[widest]:.2f} ({widest}).")
    return sentences
