"""Every experiment at its smoke budget, from a fresh clone: rows, figure, summary, resume; and the page of results."""

import json
from pathlib import Path

import numpy as np
import pytest

from integration_helpers import orbitune
from orbitune.commands.options import listed
from orbitune.experiments import EXPERIMENTS
from orbitune.experiments.cifar10 import CURVES_CROSSFIT
from orbitune.experiments.mnist_subsets import PAPER_NETWORK
from orbitune.experiments.page import render
from orbitune.experiments.records import read_rows
from orbitune.experiments.rows import reproduce
from orbitune.experiments.summary import summarise

ROOT = Path(__file__).parents[2]
PROVENANCE = {"experiment", "model", "budget", "seed", "config", "commit", "machine", "seconds", "peak_memory_mb"}


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    """An empty data directory, but for generated files in the layout of PCam: 96×96×3 bytes, labels (N, 1, 1, 1)."""
    h5py = pytest.importorskip("h5py")
    monkeypatch.setenv("ORBITUNE_DATA", str(tmp_path / "data"))
    folder = tmp_path / "data" / "pcam"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for split, num in (("train", 24), ("test", 10)):
        labels = np.arange(num).reshape(-1, 1, 1, 1) % 2
        patches = rng.integers(0, 120, (num, 96, 96, 3), dtype=np.uint8) + 100 * labels.astype(np.uint8)
        for key, values in (("x", patches), ("y", labels.astype(np.uint8))):
            with h5py.File(folder / f"camelyonpatch_level_2_split_{split}_{key}.h5", "w") as file:
                file[key] = values


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_smoke_budget_fills_every_row_and_draws_the_figure(name, data_folder, tmp_path):
    experiment, out = EXPERIMENTS[name], tmp_path / "out"
    summary = reproduce(experiment, "smoke", out, work=tmp_path / "work")
    records = read_rows(experiment, out)
    assert [record["model"] for record in records] == [
        n for n in experiment.rows if n in experiment.budgets["smoke"].configs
    ]
    for record in records:
        assert record.keys() >= PROVENANCE
        scores = [record[metric.key] for metric in experiment.metrics if metric.key in record]
        assert scores and all(score is None or np.isfinite(score) for score in scores)
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / f"{name}.json").read_text()) == json.loads(json.dumps(summary))
    assert not any((tmp_path / "work" / name).iterdir())  # finished rows leave nothing behind


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_rows_of_all_budgets_are_rows_of_the_table(name):
    experiment = EXPERIMENTS[name]
    assert set(experiment.budgets) == {"smoke", "laptop", "paper"}
    for budget in experiment.budgets.values():
        assert set(budget.configs) <= set(experiment.rows)
    assert list(experiment.budgets["laptop"].configs) == list(experiment.rows)
    # At the paper's sizes all networks are trained as in the paper, on as many images: no rows of their own for that.
    only_smaller = {PAPER_NETWORK, CURVES_CROSSFIT}
    assert list(experiment.budgets["paper"].configs) == [row for row in experiment.rows if row not in only_smaller]
    for metric in experiment.metrics:
        assert set(metric.paper) <= set(experiment.rows)


@pytest.mark.slow
def test_pcam_says_what_it_was_run_on(data_folder, tmp_path):
    reproduce(EXPERIMENTS["pcam"], "smoke", tmp_path / "out", rows=["NN-small"], work=tmp_path / "work")
    (record,) = read_rows(EXPERIMENTS["pcam"], tmp_path / "out")
    assert record["image_shape"] == [3, 96, 96] and (record["num_train"], record["num_test"]) == (24, 10)
    assert "not the official split" in record["note"]
    page = render({"pcam": EXPERIMENTS["pcam"]}, tmp_path / "out")
    assert "not the official split" in page and page.count("not run yet") == 4


def test_names_are_separated_by_commas_or_given_one_by_one():
    assert listed(["M1, M2,"]) == listed(["M1", "M2"]) == ["M1", "M2"]
    assert listed(None) is None


@pytest.mark.slow
def test_rows_and_seeds_are_chosen_on_the_command_line(tmp_path):
    places = ["--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    command = ["reproduce", "rotmnist", "--budget", "smoke", "--rows", "M1", "--rows", "M2", "--seeds", "2", *places]
    finished = orbitune(*command, "--json")
    assert finished.returncode == 0, finished.stderr
    rows = {row["model"]: row for row in json.loads(finished.stdout)["rows"]}
    assert rows["M2"]["seeds"] == [0, 1] and rows["M8"]["seeds"] == []
    assert rows["M2"]["test_accuracy"]["paper"] == 0.8357 and rows["M2"]["test_accuracy"]["spread"] is not None
    files = sorted(path.name for path in (tmp_path / "out" / "rotmnist").glob("*.json"))
    assert files == ["M1-seed0.json", "M1-seed1.json", "M2-seed0.json", "M2-seed1.json"]
    again = orbitune(*command, "--json")
    assert "is there already" in again.stderr and json.loads(again.stdout) == json.loads(finished.stdout)
    refused = orbitune("reproduce", "rotmnist", "--rows", "M99", *places)
    assert refused.returncode == 2 and "M1, M2" in refused.stderr and "Traceback" not in refused.stderr


def test_the_committed_page_is_what_the_committed_results_say():
    assert (ROOT / "docs" / "reproduction.md").read_text() == render(EXPERIMENTS, ROOT / "results")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_committed_summaries_are_those_of_the_committed_records(name):
    experiment = EXPERIMENTS[name]
    summary = summarise(experiment, read_rows(experiment, ROOT / "results"))
    assert json.loads((ROOT / "results" / f"{name}.json").read_text()) == json.loads(json.dumps(summary))
