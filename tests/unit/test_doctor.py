"""``orbitune doctor`` and ``--version``: what is said about healthy and about broken installations."""

import importlib
import json
from importlib.metadata import version

import pytest

from integration_helpers import call_main
from orbitune import doctor


@pytest.fixture
def run(monkeypatch, capsys):
    return lambda *arguments: call_main(monkeypatch, capsys, *arguments)


def test_a_healthy_installation_is_usable(run, monkeypatch, tmp_path):
    monkeypatch.setenv("ORBITUNE_DATA", str(tmp_path))
    code, out, _ = run("doctor", "--json")
    record = json.loads(out)
    assert code == 0 and record["usable"] and not record["problems"]
    assert set(record["versions"]) == {"python", "orbitune", "torch", "gpytorch", "numpy", "scikit-learn"}
    assert record["threads"] >= 1 and record["devices"][0] == "cpu"
    data = record["data"]
    assert data["path"] == str(tmp_path) and data["exists"] and data["writable"] and data["free_bytes"] > 0
    assert data["present"] == ["digits", "rotated-digits"] and "mnist" in data["absent"]


def test_the_same_is_said_in_words(run):
    code, out, _ = run("doctor")
    assert code == 0 and "Orbitune is usable." in out
    for word in (version("torch"), "threads", "data directory", "free disk space", "orbitune data fetch", "optional:"):
        assert word in out


def test_looking_makes_no_directory(run, monkeypatch, tmp_path):
    monkeypatch.setenv("ORBITUNE_DATA", str(tmp_path / "later" / "data"))
    code, out, _ = run("doctor", "--json")
    data = json.loads(out)["data"]
    assert code == 0 and not data["exists"] and data["writable"] and not list(tmp_path.iterdir())


def test_a_data_directory_that_cannot_be_written_is_a_warning(run, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ORBITUNE_DATA", str(tmp_path / "file"))
    code, out, _ = run("doctor")
    assert code == 0 and "Warning:" in out and "ORBITUNE_DATA" in out and "not writable" in out


def test_a_full_disk_is_a_warning(run, monkeypatch):
    monkeypatch.setattr(doctor, "free_space", lambda path: 3 * 2**20)
    code, out, _ = run("doctor")
    assert code == 0 and "only 3 MB are free" in out


def test_missing_and_old_packages_are_named_with_the_command(run, monkeypatch):
    versions = {"gpytorch": None, "numpy": "1.20.0"}
    monkeypatch.setattr(doctor, "installed", lambda name: versions.get(name, version("orbitune")))
    lines = ["gpytorch>=1.14", "numpy>=1.26", "onnx; extra == 'export'", "ruff; extra == 'dev'"]
    monkeypatch.setattr(doctor, "requires", lambda name: lines)
    code, out, _ = run("doctor")
    assert code == 1 and "Orbitune is not usable" in out
    assert "gpytorch is not installed: pip install 'gpytorch>=1.14'" in out
    assert "numpy 1.20.0 is installed, but >=1.26 is needed: pip install 'numpy>=1.26'" in out


def test_a_package_that_cannot_be_imported_is_a_problem(run, monkeypatch):
    real = importlib.import_module

    def broken(name):
        if name == "PIL":
            raise ImportError("libjpeg is gone")
        return real(name)

    monkeypatch.setattr(doctor, "requires", lambda name: ["pillow>=10.1"])
    monkeypatch.setattr(doctor.importlib, "import_module", broken)
    code, out, _ = run("doctor", "--json")
    (problem,) = json.loads(out)["problems"]
    assert code == 1 and "libjpeg is gone" in problem and "pip install --force-reinstall pillow" in problem


@pytest.mark.parametrize(("part", "word"), [("load_digits", "digits"), ("cholesky", "factorise")])
def test_what_every_fit_needs_is_tried(run, monkeypatch, part, word):
    def broken(*arguments):
        raise RuntimeError("it is damaged")

    monkeypatch.setattr(doctor, part, broken)
    code, out, _ = run("doctor", "--json")
    (problem,) = json.loads(out)["problems"]
    assert code == 1 and word in problem and "it is damaged" in problem and "reinstall" in problem


def test_missing_extras_come_with_the_pip_command(monkeypatch):
    lines = ["torch>=2.6", "onnx; extra == 'export'", "h5py>=3; extra == 'pcam'", "ruff; extra == 'dev'"]
    monkeypatch.setattr(doctor, "requires", lambda name: lines)
    monkeypatch.setattr(doctor, "installed", lambda name: None if name == "onnx" else "4")
    export, pcam = doctor.look_at_extras()
    assert export.missing == ("onnx",) and export.install == "pip install 'orbitune[export]'"
    assert pcam.name == "pcam" and not pcam.missing


def test_the_version_is_printed(run):
    assert run("--version") == (0, f"orbitune {version('orbitune')}\n", "")


def test_shells_can_complete(run):
    code, out, _ = run("--help")
    assert code == 0 and "--install-completion" in out
