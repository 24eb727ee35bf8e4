"""Images that stay where they are stored: in memory as bytes, or in a file when there are very many."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from orbitune.backbones import MLP
from orbitune.data import ImageDataset, allocation, from_arrays, load_dataset, load_npz
from orbitune.inputs import StoredImages, as_float, take
from orbitune.learners import CrossFit, FixedRanges, PlainNetwork, Problem
from orbitune.likelihoods import Softmax
from orbitune.network import build_network
from orbitune.orbits import AffineOrbit, IdentityOrbit
from orbitune.training import Run

BYTES = torch.randint(256, (20, 1, 6, 5), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
LABELS = torch.arange(20) % 2


@pytest.fixture
def on_disk(monkeypatch):
    """As if the memory were very small."""
    monkeypatch.setattr(allocation, "MAX_IN_MEMORY", 100)


def in_file(pixels):
    """Whether the address of the first pixel belongs to a file that has no name any more."""
    address = torch.as_tensor(pixels).data_ptr()
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(bound, 16) for bound in line.split()[0].split("-"))
        if start <= address < end:
            return line.endswith("(deleted)")
    return False


def test_stored_images_are_read_as_a_tensor_of_floats_would_be():
    stored, whole = StoredImages(BYTES), as_float(BYTES)
    assert len(stored) == 20 and stored.shape == whole.shape and stored.ndim == 4 and stored.device == whole.device
    index = torch.tensor([3, 3, 0])
    for part in (index, slice(2, 7), slice(None)):
        assert torch.equal(stored[part], whole[part])
        assert torch.equal(take(stored, part)[:], take(whole, part))
    assert [len(chunk) for chunk in stored.split(8)] == [8, 8, 4]
    assert torch.equal(torch.cat(list(stored.split(8))), whole)
    twice = take(take(stored, torch.tensor([9, 8, 7])), slice(1, 3))
    assert torch.equal(twice[:], whole[torch.tensor([8, 7])])
    assert twice.pixels is BYTES  # nothing was copied


@pytest.mark.parametrize("learner", [PlainNetwork(epochs=2.0), FixedRanges(PlainNetwork(epochs=1.0), head_steps=2)])
def test_learning_from_stored_images_is_the_same_to_the_bit(learner):
    def parameters(inputs):
        problem = Problem(inputs, LABELS, AffineOrbit(learn=["rotation"]), Softmax(2), lambda: MLP(30))
        run = Run(None, seed=0)
        with run.active():
            model = learner.learn(problem, run).model
            probabilities = model.predict(inputs, 2, generator=torch.Generator().manual_seed(0))
        return [*model.state_dict().values(), probabilities]

    for one, other in zip(parameters(StoredImages(BYTES)), parameters(as_float(BYTES)), strict=True):
        assert torch.equal(one, other)


def test_crossfit_takes_stored_images():
    problem = Problem(StoredImages(BYTES), LABELS, AffineOrbit(learn=["rotation"]), Softmax(2), lambda: MLP(30))
    learner = CrossFit(
        max_rounds=1, first_epochs=1.0, steps=2, warm_first=2, batch_size=4, orbit_size=2, num_inducing=5
    )
    run = Run(None, seed=0)
    with run.active():
        learner.learn_orbit(AffineOrbit(learn=["rotation"]), problem, run)


needs_proc = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="cannot see what memory is mapped from")


@needs_proc
def test_much_is_allocated_in_a_file_that_nobody_sees(on_disk, tmp_path, monkeypatch):
    monkeypatch.setattr(allocation.tempfile, "tempdir", str(tmp_path))
    array = allocation.allocate((10, 3, 4, 4))
    assert in_file(array) and array.shape == (10, 3, 4, 4) and not list(tmp_path.iterdir())
    array[:] = 7
    assert torch.from_numpy(array).sum() == 7 * 480
    assert not in_file(allocation.allocate((10, 10)))


def test_a_full_disk_is_reported_before_anything_is_written(on_disk, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match=r"No space left on device.*set TMPDIR"):
        allocation.allocate((1000,))


@needs_proc
@pytest.mark.parametrize("shape", [(20, 6, 5), (20, 6, 5, 3), (20, 3, 6, 5)])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_large_npz_is_the_same_from_a_file(shape, save, tmp_path, monkeypatch):
    x = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    save(tmp_path / "a.npz", x_train=x, y_train=LABELS.numpy(), x_test=x[:4] / 255, y_test=LABELS[:4].numpy())
    small = load_npz(tmp_path / "a.npz")
    monkeypatch.setattr(allocation, "MAX_IN_MEMORY", 100)
    large = load_npz(tmp_path / "a.npz")
    assert in_file(large.x_train) and not in_file(small.x_train)
    for split in ("train", "test"):
        assert torch.equal(large.images(split), small.images(split))
        assert torch.equal(large.labels(split), small.labels(split))


def test_a_large_npz_that_ends_early_is_an_error(tmp_path, on_disk):
    np.savez(tmp_path / "a.npz", x_train=BYTES.numpy(), y_train=LABELS.numpy())
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content.replace(b"'shape': (20, 1, 6, 5)", b"'shape': (99, 1, 6, 5)"))
    with pytest.raises(Exception, match="cannot read"):
        load_npz(tmp_path / "a.npz")


@needs_proc
@pytest.mark.parametrize("make", [np.float64, np.float16, np.int64, bool, np.asfortranarray])
def test_a_large_npz_of_another_kind_is_in_a_file_too(make, tmp_path, monkeypatch):
    x = np.random.default_rng(0).integers(256, size=(20, 6, 5), dtype=np.uint8)
    if make is np.asfortranarray:
        x = make(x)
    else:
        x = x.astype(make) if make is np.int64 else (x / 255).round(2).astype(make)
    np.savez(tmp_path / "a.npz", x_train=x, y_train=LABELS.numpy())
    small = load_npz(tmp_path / "a.npz")
    monkeypatch.setattr(allocation, "MAX_IN_MEMORY", 100)
    large = load_npz(tmp_path / "a.npz")
    assert in_file(large.x_train) and torch.equal(large.x_train, small.x_train)
    resized = large.resized(4, 4)
    assert in_file(resized.x_train) and torch.equal(resized.x_train, small.resized(4, 4).x_train)


def test_a_full_disk_is_not_called_a_damaged_file(tmp_path, on_disk, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    np.savez(tmp_path / "a.npz", x_train=BYTES.numpy(), y_train=LABELS.numpy())
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        load_npz(tmp_path / "a.npz")


@needs_proc
def test_a_large_folder_is_the_same_from_a_file(tmp_path, monkeypatch):
    for i, image in enumerate(BYTES[:, 0].numpy()):
        path = tmp_path / str(i % 2) / f"{i}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(image).save(path)
    small = load_dataset(tmp_path)
    monkeypatch.setattr(allocation, "MAX_IN_MEMORY", 100)
    large = load_dataset(tmp_path)
    assert in_file(large.x_train) and torch.equal(large.x_train, small.x_train)


def test_a_dataset_gives_its_images_stored():
    dataset = from_arrays(BYTES, LABELS, BYTES[:3], LABELS[:3])
    assert isinstance(dataset, ImageDataset)
    assert dataset.stored("train").pixels is dataset.x_train
    assert torch.equal(dataset.stored("test")[:], dataset.images("test"))


def test_a_network_is_built_for_stored_images():
    network = build_network(
        IdentityOrbit(), lambda: MLP(30), Softmax(2), StoredImages(BYTES), torch.Generator().manual_seed(0)
    )
    assert network(StoredImages(BYTES)[:4]).shape == (4, 2)
