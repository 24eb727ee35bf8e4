"""``docs/reproduction.md``: every experiment beside the paper, rendered from the records in ``results/``."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from orbitune.experiments.experiment import Experiment, Row
from orbitune.experiments.rows import read_rows
from orbitune.experiments.summary import markdown, summarise

INTRODUCTION = """\
# Reproduction

Rendered by `python scripts/render_reproduction.py` from the records in `results/`: do not edit. Each row is a JSON file
with its configuration, seed, commit, machine, time and memory. Numbers are means over seeds, ± their standard deviation
where there is more than one; the paper's stand in brackets. Commits a099339, 3218937, b568402 and 520e030 are steps on
the way to 300e39a, which has their changes as one."""


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
    if experiment.differences:
        parts.append("Where we differ:\n\n" + "\n".join(f"- {sentence}" for sentence in experiment.differences))
    notes = sorted({f"{record['data']}: {record['note']}" for record in records if record.get("note")})
    if notes:
        parts.append("Data: " + "; ".join(notes) + ".")
    budgets = ", ".join(summary["budgets"]) or "laptop"
    made = f"`orbitune reproduce {experiment.name} --budget {budgets}`"
    if records:
        commits = ", ".join(sorted({record["commit"] or "unknown" for record in records}))
        machines = "; ".join(sorted({f"{r['machine']['cpu']}, {r['machine']['threads']} threads" for r in records}))
        made += f", commit {commits}, on {machines}"
    parts.append(made + ".")
    return "\n\n".join(parts)
