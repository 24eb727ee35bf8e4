"""fit, predict, demo and data, as typed on the command line; and a run that is killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from PIL import Image

from integration_helpers import orbitune
from orbitune.config import FitConfig
from orbitune.data import load_dataset
from orbitune.fitting import fit
from orbitune.learners import PlainNetwork
from orbitune.training import load_state

pytestmark = pytest.mark.slow  # every test starts the program anew

NAMES = ["rotation", "log_scale_x", "log_scale_y", "shear_x", "shear_y", "translate_x", "translate_y"]
KEYS = {"ranges", "test_accuracy", "plain_network_accuracy", "elbo_per_datum", "seconds"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "demo"
    return out, orbitune("demo", "--budget", "smoke", "--out", str(out), "--json")


def test_demo_prints_one_json_object_with_everything_promised(demo):
    _, finished = demo
    assert finished.returncode == 0, finished.stderr
    result = json.loads(finished.stdout)
    assert set(result) >= KEYS
    assert list(result["ranges"]) == NAMES
    assert all(low < high for low, high in result["ranges"].values())


def test_demo_leaves_a_complete_run_directory(demo):
    out, _ = demo
    names = {path.name for path in out.iterdir()}
    assert names == {
        "config.toml",
        "history.jsonl",
        "checkpoint.safetensors",
        "model.safetensors",
        "model.json",
        "result.json",
        "predictions.npz",
        "orbit.png",
        "ranges.png",
    }
    record = json.loads((out / "result.json").read_text())
    assert set(record) >= KEYS | {"commit", "machine", "num_train"}
    lines = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    assert {"seconds", "phase", "elbo", "kl", "ranges"} <= lines[-1].keys()


def test_a_finished_run_predicts(demo, tmp_path):
    finished = orbitune("predict", str(demo[0]), "digits", "--out", str(tmp_path), "--orbit-size", "2", "--json")
    assert finished.returncode == 0, finished.stderr
    assert set(json.loads(finished.stdout)) >= KEYS
    lines = (tmp_path / "predictions.csv").read_text().splitlines()
    assert lines[0].startswith("image,predicted,p(0),p(1)") and len(lines) == 1001


def test_a_run_on_resized_images_resizes_what_it_predicts(tmp_path):
    pixels = torch.randint(256, (12, 20, 30), generator=torch.Generator().manual_seed(0), dtype=torch.uint8).numpy()
    for i, image in enumerate(pixels):
        path = tmp_path / "photos" / ("cats" if i < 6 else "dogs") / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image[: 12 + i, :20]).save(path)
    run, photos = str(tmp_path / "run"), tmp_path / "photos"
    options = ("--backbone", "mlp", "--learner", "fixed", "--budget", "smoke", "--orbit", "rotation", "--quiet")
    finished = orbitune("fit", str(photos), "--resize", "9", "--out", run, *options)
    assert finished.returncode == 0, finished.stderr
    assert json.loads((tmp_path / "run" / "model.json").read_text())["image_shape"] == [1, 9, 9]
    finished = orbitune("predict", run, str(photos), "--json")
    assert 0 <= json.loads(finished.stdout)["test_accuracy"] <= 1
    assert (tmp_path / "run" / "predictions.csv").read_text().splitlines()[1].startswith("cats/0.png,")
    finished = orbitune("predict", run, str(photos / "dogs"), "--out", str(tmp_path / "dogs"))
    assert finished.stdout.startswith("6 images: ") and "Accuracy" not in finished.stdout
    assert "predictions.csv" in finished.stdout
    assert len((tmp_path / "dogs" / "predictions.csv").read_text().splitlines()) == 7


def test_a_run_is_not_overwritten_but_can_be_asked_for_again(demo):
    out, finished = demo
    refused = orbitune("demo", "--budget", "smoke", "--out", str(out), "--json")
    assert refused.returncode == 2 and "already holds a run" in refused.stderr
    before = (out / "model.safetensors").read_bytes()
    again = orbitune("demo", "--budget", "smoke", "--out", str(out), "--resume", "--json")
    assert (out / "model.safetensors").read_bytes() == before
    assert json.loads(again.stdout)["ranges"] == json.loads(finished.stdout)["ranges"]


LEARNERS = ["coordinate", "joint", "max-likelihood", "fixed", "augmented", "plain"]


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_runs_with_every_likelihood_it_is_given(learner, tmp_path):
    likelihood = "gaussian" if learner in ("coordinate", "fixed") else "softmax"
    command = ["fit", "digits", "--learner", learner, "--likelihood", likelihood, "--budget", "smoke"]
    finished = orbitune(*command, "--train-size", "60", "--out", str(tmp_path / "run"), "--json", "--quiet")
    assert finished.returncode == 0, finished.stderr
    assert set(json.loads(finished.stdout)) >= KEYS


def test_the_plain_learner_trains_its_network_and_has_no_other_beside_it(tmp_path):
    config = FitConfig(data="digits", train_size=100, learner="plain", settings=PlainNetwork(epochs=3.0))
    assert config.baseline_epochs > 0
    result = fit(config, load_dataset("digits"), tmp_path / "run")
    assert result.test_accuracy > 0.4 and result.plain_network_accuracy is None


def test_orbit_and_config_file_decide_what_is_learned(tmp_path):
    config = tmp_path / "fit.toml"
    config.write_text('learner = "crossfit"\ntrain_size = 60\nbaseline_epochs = 0\n[orbit]\nsymmetric = true\n')
    command = ["fit", "digits", "--config", str(config), "--orbit", "rotation", "--budget", "smoke"]
    finished = orbitune(*command, "--out", str(tmp_path / "run"), "--json", "--quiet")
    assert finished.returncode == 0, finished.stderr
    result = json.loads(finished.stdout)
    low, high = result["ranges"]["rotation"]
    assert low == pytest.approx(-high) and result["plain_network_accuracy"] is None
    assert all(result["ranges"][name] == [0, 0] for name in NAMES[1:])
    resolved = (tmp_path / "run" / "config.toml").read_text()
    assert "symmetric = true" in resolved and "max_rounds = 2" in resolved


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "no-such-set"], "no-such-set"),
        (["fit"], "nothing to learn from"),
        (["fit", "digits", "--orbit", "rotaton"], "rotation"),
        (["fit", "digits", "--likelihood", "student"], "softmax"),
        (["fit", "digits", "--backbone", "vgg"], "mnist-cnn"),
        (["fit", "digits", "--likelihood", "bernoulli"], "two classes"),
        (["fit", "digits", "--learner", "magic"], "crossfit"),
        (["fit", "digits", "--config", "missing.toml"], "missing.toml"),
        (["predict", "nowhere", "digits"], "nowhere"),
        (["data", "fetch", "no-such-set"], "mnist"),
    ],
)
def test_a_mistake_gets_a_sentence_and_a_non_zero_exit(arguments, message, tmp_path):
    out = ["--out", str(tmp_path / "run")] if arguments[0] == "fit" else []
    finished = orbitune(*arguments, *out)
    assert finished.returncode != 0
    assert "Traceback" not in finished.stderr
    assert message in " ".join(finished.stderr.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lerner = 1", "lerner"),
        ("[settings]\nround = 3", "max_rounds"),
        ("seed = 'x'", "expected int, got 'x'"),
        ("[orbit]\npadding = 'wrap'", "reflection"),
        ("[orbit.ranges]\nrotation = [1.0]", "expected 2 values"),
        ("= 3", "not valid TOML"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(text, message, tmp_path):
    (tmp_path / "fit.toml").write_text(text)
    finished = orbitune("fit", "digits", "--config", str(tmp_path / "fit.toml"), "--out", str(tmp_path / "run"))
    assert finished.returncode == 2, finished.stderr
    assert message in " ".join(finished.stderr.split()) and "Traceback" not in finished.stderr


def test_data_list_shows_what_is_here_and_what_can_be_had(tmp_path):
    finished = orbitune("data", "list", environment={"ORBITUNE_DATA": str(tmp_path)})
    assert finished.returncode == 0
    for name in ("digits", "mnist", "cifar10", "pcam"):
        assert name in finished.stdout


def parameters(directory):
    return load_state(directory / "model.safetensors")


def test_killed_at_five_moments_and_resumed_ends_with_the_same_parameters(demo, tmp_path):
    """kill -9, five times, at moments that depend on the machine's mood; then once more to the end."""
    out = tmp_path / "run"
    command = [sys.executable, "-c", "from orbitune.cli import main; main()", "demo", "--budget", "smoke", "--quiet"]
    environment = os.environ | {"ORBITUNE_SAVE_SECONDS": "0", "OMP_NUM_THREADS": "1"}
    wait = 0.3
    for attempt in range(5):
        process = subprocess.Popen([*command, "--out", str(out), *(["--resume"] if attempt else [])], env=environment)
        deadline = time.monotonic() + 60
        seen = (out / "checkpoint.safetensors").stat().st_mtime_ns if (out / "checkpoint.safetensors").exists() else 0
        while time.monotonic() < deadline and process.poll() is None:  # it has got further than the last time
            checkpoint = out / "checkpoint.safetensors"
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns != seen:
                break
            time.sleep(0.02)
        time.sleep(wait * attempt / 4)
        process.send_signal(signal.SIGKILL)
        process.wait()
    finished = orbitune("demo", "--budget", "smoke", "--out", str(out), "--resume", "--json", "--quiet")
    assert finished.returncode == 0, finished.stderr
    expected, got = parameters(demo[0]), parameters(out)
    assert expected.keys() == got.keys()
    assert all(torch.equal(got[name], expected[name]) for name in expected)
