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
from orbitune.experiments.experiment import Experiment, Task
from orbitune.experiments.records import changed_settings, read_row, read_rows
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
    if rows is not None and not rows:
        raise InputError(f"no row of {experiment.name} is named; choose some of: {', '.join(configs)}")
    for name in rows or ():
        if name not in configs:
            raise unknown_name(f"row of {experiment.name} at budget {budget}:", name, configs)
    _refuse_other_budgets(experiment, budget, out)
    seeds = range(experiment.budgets[budget].num_seeds) if seeds is None else seeds
    progress = progress or Silent()
    todo = [(seed, name) for seed in seeds for name in rows or configs]
    for number, (seed, name) in enumerate(todo, start=1):
        progress.message(f"{experiment.name}, row {name}, seed {seed} ({number} of {len(todo)})")
        path = out / experiment.name / f"{name}-seed{seed}.json"
        if path.exists():
            changes = changed_settings(experiment, read_row(path))
            advice = (
                f", of another recipe ({'; '.join(changes)}): remove it to compute the row again" if changes else ""
            )
            progress.message(f"{path} is there already{advice}")
        else:
            _compute(experiment, budget, name, seed, path, work or cache_dir() / "work", progress)
            gather(experiment, out)  # now, in case the next row is interrupted
    return gather(experiment, out)


def gather(experiment: Experiment, out: Path) -> dict[str, Any]:
    """Draw the figure and write the summary of the rows in ``out``; the summary."""
    records = read_rows(experiment, out)
    experiment.figure(records).savefig(out / f"{experiment.name}.png", dpi=120)
    summary = summarise(experiment, records)
    write_json(out / f"{experiment.name}.json", summary)
    return summary


def _refuse_other_budgets(experiment: Experiment, budget: str, out: Path) -> None:
    """Seeds of one row are averaged, and rows compared: all of them must be of one budget."""
    others = {record["budget"] for record in read_rows(experiment, out)} - {budget}
    if others:
        raise InputError(
            f"{out / experiment.name} has records made with the budget {others.pop()!r}, not {budget!r}: choose "
            "another --out, or remove them"
        )


def _compute(
    experiment: Experiment, budget: str, name: str, seed: int, path: Path, work: Path, progress: Progress
) -> None:
    """Compute a row and seed, and write its record."""
    path.parent.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    config = experiment.budgets[budget].configs[name]
    # Another configuration is another piece of work: its checkpoints would not fit.
    digest = hashlib.sha256(repr((config, seed)).encode()).hexdigest()[:10]
    directory = work / experiment.name / f"{path.stem}-{digest}"
    directory.mkdir(parents=True, exist_ok=True)
    forget_peak_memory()
    commits = _remember_commit(directory)
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
        "commit": commits,
        "machine": machine(),
    }
    write_json(path, record)
    shutil.rmtree(directory)


def _remember_commit(directory: Path) -> str | None:
    """The commits that have worked in a directory, in their order: now's, and those of sessions before."""
    path = directory / "commits.json"
    known: list[str] = json.loads(path.read_text()) if path.exists() else []
    code = commit()  # now, and not when the work is done
    if code and code not in known:
        known.append(code)
        write_json(path, known)
    return ", ".join(known) or None
