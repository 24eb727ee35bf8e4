"""Every mistake in docs/errors.md gets the answer that stands there, and no traceback."""

import shlex
from pathlib import Path

import jaxtyping
import numpy as np
import pytest

from app_helpers import save_run, serving
from integration_helpers import call_main
from orbitune import InvariantClassifier, InvariantRegressor
from orbitune.likelihoods import Softmax
from user_errors import make_files, render
from user_mistakes import MISTAKES

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
CASES = [case for cases in MISTAKES.values() for case in cases]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("mistakes")
    make_files(path)
    return path


@pytest.fixture
def at_home(folder, monkeypatch):
    """In the folder, without data sets, and without the checks of types that only tests have."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ORBITUNE_DATA", str(folder / "data"))
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    return folder


@pytest.mark.parametrize("case", [case for case in CASES if case.code in (0, 1, 2)], ids=lambda case: case.call)
def test_the_command_line_answers_a_mistake(case, at_home, monkeypatch, capsys):
    code, _, err = call_main(monkeypatch, capsys, *shlex.split(case.call)[1:])
    assert case.is_answered_by(answer(err, at_home)), err
    assert code == case.code
    assert "Traceback" not in err
    assert not (at_home / "run" / "checkpoint.safetensors").exists()  # which would refuse the corrected command


def answer(err, folder):
    """What follows "Error:" (typer's own errors have their usage before, and put theirs in a box)."""
    return err.replace(str(folder), "…").partition("Error")[2].lstrip(": ").strip()


@pytest.fixture(scope="module")
def client(folder):
    with serving(save_run(folder / "digits-run", {"rotation": (-1.0, 1.0)}), folder / "work") as client:
        yield client


@pytest.mark.parametrize("case", [case for case in CASES if (case.code or 0) >= 400], ids=lambda case: case.call)
def test_the_app_answers_a_mistake(case, at_home, client):
    action, _, what = case.call.partition(" ")
    if action == "upload":
        status, values = client.send_file(f"/api/upload?name={what}", (at_home / what).read_bytes())
    elif action == "image":
        status, values = client.send_file("/api/image", (at_home / what).read_bytes())
    else:
        path, key = {"fit": ("/api/fit", "data"), "open": ("/api/run", "directory")}[action]
        status, values = client.post(path, {key: what})
    assert case.is_answered_by(values["error"].replace(str(at_home), "…")), values
    assert status == case.code


@pytest.fixture(scope="module")
def names():
    """What the Python cases are about."""
    X, y = np.linspace(0, 1, 6 * 64).reshape(6, 8, 8), np.arange(6) % 2
    fitted = InvariantClassifier(backbone="mlp", learner="plain", budget="smoke", random_state=0).fit(X, y)
    known = {"np": np, "InvariantClassifier": InvariantClassifier, "InvariantRegressor": InvariantRegressor}
    return known | {"Softmax": Softmax, "X": X, "y": y, "vectors": X.reshape(6, 64), "fitted": fitted}


@pytest.mark.parametrize("case", [case for case in CASES if case.code is None], ids=lambda case: case.call)
def test_the_estimators_answer_a_mistake(case, at_home, names):
    with pytest.raises(ValueError) as error:
        eval(case.call, names)
    assert case.is_answered_by(" ".join(str(error.value).split())), error.value


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == render(MISTAKES)
