"""The command line, as a newcomer types it."""

import json

import pytest

from integration_helpers import orbitune


@pytest.fixture(scope="module")
def fig1(tmp_path_factory):
    out = tmp_path_factory.mktemp("fig1")
    places = ["--out", str(out), "--work", str(tmp_path_factory.mktemp("work"))]
    return out, orbitune("reproduce", "fig1", "--budget", "smoke", *places, "--json")


def test_fig1_prints_one_json_object_and_writes_rows_summary_and_figure(fig1):
    out, finished = fig1
    assert finished.returncode == 0, finished.stderr
    summary = json.loads(finished.stdout)
    assert summary == json.loads((out / "fig1.json").read_text())
    assert (out / "fig1.png").read_bytes().startswith(b"\x89PNG")
    for model in ("plain", "sign-invariant"):
        record = json.loads((out / "fig1" / f"{model}-seed0.json").read_text())
        assert record["model"] == model and {"config", "seed", "commit", "machine"} <= record.keys()


def test_fig1_has_the_orderings_of_the_paper(fig1):
    plain, invariant = json.loads((fig1[0] / "fig1.json").read_text())["rows"]
    assert plain["train_mse"]["mean"] < invariant["train_mse"]["mean"]
    assert invariant["test_mse"]["mean"] < plain["test_mse"]["mean"]
    assert invariant["log_marginal_likelihood"]["mean"] > plain["log_marginal_likelihood"]["mean"]


def test_an_unknown_experiment_lists_the_known_ones():
    finished = orbitune("reproduce", "fig99")
    assert finished.returncode == 2
    assert "fig99" in finished.stderr and "fig1" in finished.stderr and "Traceback" not in finished.stderr


def test_an_output_directory_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    finished = orbitune("reproduce", "fig1", "--budget", "smoke", "--out", str(tmp_path / "file" / "below"))
    assert finished.returncode == 1
    assert "Error:" in finished.stderr and "Traceback" not in finished.stderr


def test_help_teaches_with_an_example():
    finished = orbitune("reproduce", "--help")
    assert finished.returncode == 0
    assert "orbitune reproduce fig1" in finished.stdout
