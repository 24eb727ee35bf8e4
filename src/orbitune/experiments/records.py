"""Records of rows that were computed: read, and compared with how the row would be computed today."""

import json
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

from orbitune.errors import DataError
from orbitune.experiments.experiment import Experiment, Row

NEEDED = frozenset({"model", "budget", "seed", "config", "seconds"})
"""Without these a record is none."""


def read_rows(experiment: Experiment, out: Path) -> list[Row]:
    """The records of all rows in a folder of results, in the order of the table, then of the seeds."""
    order = list(experiment.rows)
    records = [read_row(path) for path in (out / experiment.name).glob("*.json")]
    known = [record for record in records if record["model"] in order]
    return sorted(known, key=lambda record: (order.index(record["model"]), record["seed"]))


def read_row(path: Path) -> Row:
    """One record."""
    try:
        record = json.loads(path.read_text())
    except ValueError as error:
        raise DataError(f"{path} is damaged: remove it, and the row will be computed again") from error
    missing = NEEDED - set(record) if isinstance(record, dict) else NEEDED
    if missing:
        raise DataError(f"{path} is no record of an experiment: it lacks {', '.join(sorted(missing))}. Remove it")
    return record


def changed_settings(experiment: Experiment, record: Row) -> list[str]:
    """What the row's configuration was when the record was made, where it is another one today."""
    config = experiment.budgets[record["budget"]].configs.get(record["model"])
    return list(_changes(config, record["config"])) if config is not None else ["the row is not computed any more"]


def _changes(config: Any, recorded: dict[str, Any], path: str = "") -> Iterator[str]:
    """Settings that differ, by their path; what a record lacks is younger than it, and had its default."""
    for field in fields(config):
        now = getattr(config, field.name)
        if is_dataclass(now):
            yield from _changes(now, recorded.get(field.name, {}), f"{path}{field.name}.")
            continue
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        before = recorded.get(field.name, None if default is MISSING else default)
        if field.name != "seed" and _as_read(before) != _as_read(now):  # the seed is the record's own
            yield f"{path}{field.name} {_shown(before)}, now {_shown(now)}"


def _as_read(value: Any) -> Any:
    """A value as it comes back from a file: tuples are lists, enumerations strings."""
    return json.loads(json.dumps(value))


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)
