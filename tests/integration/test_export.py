"""``orbitune export``, as typed on the command line, on a finished run."""

import json

import pytest
import torch

from integration_helpers import orbitune
from orbitune.backbones import MnistCNN
from orbitune.export.agreement import run_file
from orbitune.likelihoods import Softmax
from orbitune.model import build_model
from orbitune.network import OrbitNetwork
from orbitune.orbits import AffineOrbit, IdentityOrbit
from orbitune.saving import load_model, save_model

pytestmark = pytest.mark.slow  # every test starts the program anew

SHAPE = (1, 28, 28)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two directories as `orbitune fit` leaves them: an invariant GP, and a plain network."""
    generator = torch.Generator().manual_seed(0)
    orbit = AffineOrbit({"rotation": (-1.0, 2.0)}, padding="border")
    images = torch.rand(40, *SHAPE, generator=generator)
    model = build_model(orbit, MnistCNN(SHAPE), Softmax(2), images, num_inducing=10, generator=generator)
    plain = OrbitNetwork(IdentityOrbit(), MnistCNN(SHAPE), torch.nn.Linear(50, 2), Softmax(2))
    directories = {}
    for name, what in (("gp", model), ("plain", plain)):
        directories[name] = tmp_path_factory.mktemp(name)
        names = {"class_names": ("cat", "dog"), "likelihood": "softmax", "backbone": "mnist-cnn"}
        save_model(directories[name], what, image_shape=SHAPE, **names)
    return directories


def test_torch_writes_a_file_into_the_run_once(runs):
    finished = orbitune("export", str(runs["gp"]), "--to", "torch", "--check", "--json")
    assert finished.returncode == 0, finished.stderr
    record = json.loads(finished.stdout)
    path = runs["gp"] / "augmentation_torch.py"
    assert record["file"] == str(path) and record["max_difference"] == {"pixels": 0.0}
    module = run_file(path.read_text(), "exported")
    assert {name: tuple(pair) for name, pair in record["ranges"].items()} == module.RANGES
    assert module.RANGES["rotation"] == (-1.0, 2.0) and module.PADDING == "border"

    refused = orbitune("export", str(runs["gp"]), "--to", "torch")
    assert refused.returncode == 2 and "--force" in refused.stderr
    assert orbitune("export", str(runs["gp"]), "--to", "torch", "--force").returncode == 0


def test_json_goes_to_standard_output_if_asked(runs):
    finished = orbitune("export", str(runs["gp"]), "--to", "json", "--out", "-")
    assert finished.returncode == 0, finished.stderr
    record = json.loads(finished.stdout)
    assert record["parameters"][0] == {"name": "rotation", "low": -1.0, "high": 2.0, "unit": "rad"}
    assert not (runs["gp"] / "augmentation.json").exists()


def test_onnx_predicts_what_the_model_predicts(runs, tmp_path):
    for library in ("onnxscript", "onnxruntime"):
        pytest.importorskip(library, reason=f"{library} is not installed")
    import onnxruntime

    path = tmp_path / "deep" / "cats.onnx"
    finished = orbitune(
        "export", str(runs["gp"]), "--to", "onnx", "--orbit-size", "64", "--out", str(path), "--check", "--json"
    )
    assert finished.returncode == 0, finished.stderr
    assert max(json.loads(finished.stdout)["max_difference"].values()) < 1e-4
    session = onnxruntime.InferenceSession(path)
    images = torch.rand(5, *SHAPE, generator=torch.Generator().manual_seed(1))
    probabilities, f_mean, f_std = session.run(None, {"images": images.numpy()})
    model, _ = load_model(runs["gp"])
    expected = model.predict(images, 64, num_f_samples=4096, generator=torch.Generator().manual_seed(2))
    assert abs(probabilities - expected.numpy()).max() < 0.02
    assert f_mean.shape == f_std.shape == (5, 2) and (f_std > 0).all()
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["class_names"]) == ["cat", "dog"] and json.loads(metadata["orbit_size"]) == 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", "--to", "torch"], "nowhere holds no finished model"),
        (["PLAIN", "--to", "kornia"], "IdentityOrbit"),
        (["GP", "--to", "imgaug"], "albumentations"),
        (["GP", "--to", "onnx", "--out", "-"], "--out -"),
        (["GP", "--to", "json", "--check"], "--check"),
        (["GP", "--to", "json", "--out", "GP"], "is a directory"),
        (["GP"], "--to"),
    ],
)
def test_a_mistake_gets_a_sentence_and_a_non_zero_exit(runs, arguments, message):
    places = {"GP": str(runs["gp"]), "PLAIN": str(runs["plain"])}
    finished = orbitune("export", *(places.get(argument, argument) for argument in arguments))
    assert finished.returncode == 2
    assert "Traceback" not in finished.stderr
    assert message in " ".join(finished.stderr.split())


def test_help_teaches_with_an_example():
    finished = orbitune("export", "--help")
    assert finished.returncode == 0 and "orbitune export run --to torch" in finished.stdout
