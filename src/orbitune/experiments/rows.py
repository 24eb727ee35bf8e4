"""Computes the rows of an experiment, one file each: what is there is kept, what was interrupted goes on."""

import hashlib
import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from orbitune.data.locations import cache_dir
from orbitune.errors import InputError, unknown_name
from orbitune.experiments.experiment import Experiment, Row, Task
from orbitune.experiments.summary import summarise
from orbitune.provenance import commit, forget_peak_memory, machine, peak_memory_mb, write_json
from orbitune.training import Progress, Silent


def reproduce(
    experiment: Experiment,
    budget: str,
    out: Path,
    *,
    rows: Sequence[str] | None = None,
    seeds: Sequence[int] | None = None,
    work: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Compute the rows that are missing in ``out``, seed after seed; then the figure and the summary of all rows there.

    Args:
        experiment: what to reproduce.
        budget: "smoke", "laptop" or "paper".
        out: gets ``<experiment>/<row>-seed<seed>.json``, ``<experiment>.json`` (the summary) and ``<experiment>.png``.
        rows: names of rows; by default all of the budget.
        seeds: by default 0 … the budget's number − 1.
        work: for checkpoints of unfinished rows; by default a folder in the user's cache.
        progress: who is told what happens.
    """
    configs = experiment.budgets[budget].configs
    for name in rows or ():
        if name not in configs:
            raise unknown_name(f"row of {experiment.name} at budget {budget}:", name, configs)
    seeds = range(experiment.budgets[budget].num_seeds) if seeds is None else seeds
    progress = progress or Silent()
    todo = [(seed, name) for seed in seeds for name in rows or configs]
    for number, (seed, name) in enumerate(todo, start=1):
        progress.message(f"{experiment.name}, row {name}, seed {seed} ({number} of {len(todo)})")
        _row(experiment, budget, name, seed, out, work or cache_dir() / "work", progress)
    return gather(experiment, out)


def read_rows(experiment: Experiment, out: Path) -> list[Row]:
    """The records of all rows in a folder of results, in the order of the table, then of the seeds."""
    order = list(experiment.rows)
    records = [json.loads(path.read_text()) for path in (out / experiment.name).glob("*.json")]
    known = [record for record in records if record["model"] in order]
    return sorted(known, key=lambda record: (order.index(record["model"]), record["seed"]))


def gather(experiment: Experiment, out: Path) -> dict[str, Any]:
    """Draw the figure and write the summary of the rows in ``out``; the summary."""
    records = read_rows(experiment, out)
    experiment.figure(records).savefig(out / f"{experiment.name}.png", dpi=120)
    summary = summarise(experiment, records)
    write_json(out / f"{experiment.name}.json", summary)
    return summary


def _row(experiment: Experiment, budget: str, name: str, seed: int, out: Path, work: Path, progress: Progress) -> None:
    stem = f"{name}-seed{seed}"
    path = out / experiment.name / f"{stem}.json"
    if path.exists():
        found = json.loads(path.read_text())["budget"]
        if found != budget:
            raise InputError(
                f"{path} was made with the budget {found!r}, not {budget!r}: choose another --out, or remove it"
            )
        progress.message(f"{path} is there already")
        return
    path.parent.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    config = experiment.budgets[budget].configs[name]
    # Another configuration is another piece of work: its checkpoints would not fit.
    digest = hashlib.sha256(repr((config, seed)).encode()).hexdigest()[:10]
    directory = work / experiment.name / f"{stem}-{digest}"
    directory.mkdir(parents=True, exist_ok=True)
    forget_peak_memory()
    code = commit()  # now, and not when it is done
    started = time.monotonic()
    result = experiment.compute(Task(config, seed, directory, path.with_suffix(""), progress))
    accuracies = [metric.paper.get(name) for metric in experiment.metrics if metric.key == "test_accuracy"]
    record = {
        "experiment": experiment.name,
        "model": name,
        "description": experiment.rows[name],
        "budget": budget,
        "seed": seed,
        # A result that knows better (of earlier sessions, of its own seed) comes after these.
        "seconds": time.monotonic() - started,
        "config": asdict(config),
        **({"paper_accuracy": accuracies[0]} if accuracies else {}),
        **result,
        "peak_memory_mb": peak_memory_mb(),
        "commit": code,
        "machine": machine(),
    }
    write_json(path, record)
    shutil.rmtree(directory)
