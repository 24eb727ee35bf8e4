"""The real data sets, where they are at hand: $ORBITUNE_TEST_DATA, or shared/data beside the repository."""

import importlib.util
import os
from pathlib import Path

import pytest
import torch

from orbitune.data import dataset_table, load_dataset, load_digits
from orbitune.data.standard import regenerate_rotated_mnist

REPOSITORY = Path(__file__).parents[2]
DATA = Path(os.environ.get("ORBITUNE_TEST_DATA") or REPOSITORY.parent / "shared" / "data")


@pytest.fixture(autouse=True)
def data_folder(monkeypatch):
    monkeypatch.setenv("ORBITUNE_DATA", str(DATA))


def need(name):
    rows = {row.name: row for row in dataset_table()}
    if not rows[name].present:
        pytest.skip(f"no {name} in {DATA}; set ORBITUNE_TEST_DATA to a folder that has it")


@pytest.fixture(scope="module")
def mnist():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORBITUNE_DATA", str(DATA))
        need("mnist")
        return load_dataset("mnist")


def test_mnist(mnist):
    assert (mnist.num_train, mnist.num_test, mnist.image_shape) == (60_000, 10_000, (1, 28, 28))
    assert mnist.y_train.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert mnist.y_train[:5].tolist() == [5, 0, 4, 1, 9] and mnist.y_test[:5].tolist() == [7, 2, 1, 0, 4]
    assert mnist.images().mean() == pytest.approx(0.1307, abs=1e-4)


def test_the_shipped_digits_are_those_that_the_script_makes(mnist):
    spec = importlib.util.spec_from_file_location("make_digits", REPOSITORY / "scripts" / "make_digits.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    made, shipped = script.choose(mnist), load_digits()
    assert torch.equal(made.x_train, shipped.x_train) and torch.equal(made.x_test, shipped.x_test)
    assert torch.equal(made.y_train, shipped.y_train) and torch.equal(made.y_test, shipped.y_test)


def test_rotated_mnist(mnist):
    rotated = regenerate_rotated_mnist(mnist, seed=0)
    assert (rotated.num_train, rotated.num_test) == (12_000, 50_000)
    assert rotated.images().mean() == pytest.approx(0.13, abs=0.005)


def test_cifar10():
    need("cifar10")
    cifar10 = load_dataset("cifar10")
    assert cifar10.image_shape == (3, 32, 32) and cifar10.num_classes == 10
    names = [cifar10.class_names[y] for y in cifar10.y_train[:3]]
    assert names == ["frog", "truck", "truck"]  # the first images of the official files
    mean = cifar10.images().mean((0, 2, 3))
    torch.testing.assert_close(mean, torch.tensor([0.4914, 0.4822, 0.4465]), atol=5e-3, rtol=0)
    assert cifar10.num_train == 50_000 or "not the complete set" in cifar10.note


def test_pcam():
    pytest.importorskip("h5py", reason="h5py, of the extra pcam, is not installed")
    need("pcam")
    pcam = load_dataset("pcam")
    assert pcam.image_shape == (3, 96, 96) and pcam.class_names == ("normal", "tumour")
    assert pcam.num_train == 262_144 or "not the official split" in pcam.note
