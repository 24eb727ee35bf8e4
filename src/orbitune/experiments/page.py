"""``docs/reproduction.md``: every experiment beside the paper, rendered from the records in ``results/``."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from orbitune.experiments.experiment import Experiment, Row
from orbitune.experiments.records import changed_settings, read_rows
from orbitune.experiments.summary import markdown, summarise

INTRODUCTION = """\
# Reproduction

Rendered by `python scripts/render_reproduction.py` from the records in `results/`: do not edit. Each row is a JSON file
with its configuration, seed, commit, machine, time and memory. Numbers are means over seeds, ± their standard deviation
where there is more than one; the paper's stand in brackets. A share p of n test images has a standard error of
√(p(1 − p)/n): 0.0004 at 0.99 of 50,000, 0.001 at 0.99 of 10,000. The command under each section computes the rows of
one seed (three of some); `--rows M9 --seeds 3` computes more of one row. Commits a099339, 3218937 and 520e030 are steps
on the way to 300e39a, which has their changes as one; so are 94cb7c7, 3f46b45 and 086dbee on the way to 2dbbeac. The
row crossfit-45000 was called crossfit at its commit."""


def render(experiments: dict[str, Experiment], results: Path) -> str:
    """The page, as Markdown; ``results`` lies beside the folder of the page."""
    return "\n\n".join((INTRODUCTION, *(_section(experiment, results) for experiment in experiments.values()))) + "\n"


def _orbit_pictures(experiment: Experiment, records: Sequence[Row], results: Path) -> Iterator[Path]:
    """The picture of the first seed of each pictured row that has one."""
    for name in experiment.pictured:
        own = [record for record in records if record["model"] == name]
        paths = (results / experiment.name / f"{name}-seed{record['seed']}-orbit.png" for record in own)
        yield from islice((path for path in paths if path.exists()), 1)


def _orbit_picture(path: Path, results: Path) -> str:
    row = path.name.removesuffix("-orbit.png")
    return f"Samples of the orbit that {row} has learned:\n\n![{row}](../{results.name}/{path.parent.name}/{path.name})"


def _section(experiment: Experiment, results: Path) -> str:
    records = read_rows(experiment, results)
    summary = summarise(experiment, records)
    parts = [f"## {experiment.title}", experiment.question, markdown(experiment, summary)]
    if summary["findings"]:
        parts.append("\n".join(f"- {sentence}" for sentence in summary["findings"]))
    if records and (results / f"{experiment.name}.png").exists():
        parts.append(f"![{experiment.title}](../{results.name}/{experiment.name}.png)")
    parts += [_orbit_picture(path, results) for path in _orbit_pictures(experiment, records, results)]
    outdated = _outdated(experiment, records)
    if outdated:
        parts.append("Made with other settings than today's:\n\n" + "\n".join(f"- {line}" for line in outdated))
    if experiment.differences:
        parts.append("Where we differ:\n\n" + "\n".join(f"- {sentence}" for sentence in experiment.differences))
    notes = _notes(records)
    if notes:
        parts.append("Data: " + "; ".join(notes) + ".")
    budgets = ", ".join(summary["budgets"]) or "laptop"
    made = f"`orbitune reproduce {experiment.name} --budget {budgets}`"
    if records:
        machines = "; ".join(
            sorted({f"{r['machine']['cpu']}, {_count(r['machine']['threads'], 'thread')}" for r in records})
        )
        made += f", on {machines}. Commits: {_by_commit(records)}"
    parts.append(made + ".")
    return "\n\n".join(parts)


def _outdated(experiment: Experiment, records: Sequence[Row]) -> list[str]:
    """Rows that would be computed otherwise today, those of the same changes together."""
    rows: dict[str, list[str]] = {}
    for record in records:
        changes = "; ".join(changed_settings(experiment, record))
        rows.setdefault(changes, []).append(f"{record['model']} (seed {record['seed']})")
    return [f"{', '.join(names)}: {changes}." for changes, names in rows.items() if changes]


def _notes(records: Sequence[Row]) -> list[str]:
    """What must be known about the data, and of which rows, if not of all."""
    rows: dict[str, list[str]] = {}
    for record in (r for r in records if r.get("note")):
        rows.setdefault(f"{record['data']}: {record['note']}", []).append(record["model"])
    others = any(not record.get("note") for record in records)
    return sorted(f"{note} ({', '.join(dict.fromkeys(names))})" if others else note for note, names in rows.items())


def _by_commit(records: Sequence[Row]) -> str:
    """Which rows were made at which commit."""
    rows: dict[str, list[str]] = {}
    for record in records:
        rows.setdefault(record["commit"] or "unknown", []).append(record["model"])
    return "; ".join(f"{code} ({', '.join(dict.fromkeys(names))})" for code, names in rows.items())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
