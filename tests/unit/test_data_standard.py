"""The official file formats, each in a tiny file made here."""

import gzip
import io
import math
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest
import torch

from orbitune.data import load_dataset
from orbitune.data.formats import read_h5, read_idx
from orbitune.data.standard import AMAT_FILES, AMAT_ZIP, IDX_FILES, PCAM_FILES
from orbitune.errors import DataError

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ORBITUNE_DATA", str(tmp_path))
    return tmp_path


def pixels(*shape):
    return rng.integers(256, size=shape, dtype=np.uint8)


def labels(num, num_classes=10):
    return (np.arange(num) % num_classes).astype(np.uint8)


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


# ------------------------------------------------------------------------------------------------------------------ IDX


def idx(array):
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()


def put_idx(folder, *, zipped=True, num=40, num_test=30):
    arrays = pixels(num, 28, 28), labels(num), pixels(num_test, 28, 28), labels(num_test)
    for name, array in zip(IDX_FILES, arrays, strict=True):
        content = idx(array)
        put(folder / (f"{name}.gz" if zipped else name), gzip.compress(content) if zipped else content)
    return arrays


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize(
    ("name", "folder"),
    [("mnist", "mnist"), ("mnist", "."), ("mnist", "MNIST/raw"), ("fashion-mnist", "fashion-mnist")],
)
def test_idx(data_folder, name, folder, zipped):
    x_train, y_train, x_test, y_test = put_idx(data_folder / folder, zipped=zipped)
    dataset = load_dataset(name)
    np.testing.assert_array_equal(dataset.x_train[:, 0].numpy(), x_train)
    np.testing.assert_array_equal(dataset.x_test[:, 0].numpy(), x_test)
    assert dataset.y_train.tolist() == y_train.tolist() and dataset.y_test.tolist() == y_test.tolist()
    assert dataset.class_names[9] == ("9" if name == "mnist" else "Ankle boot")


def test_mnist_files_are_not_taken_for_fashion(data_folder):
    put_idx(data_folder)
    with pytest.raises(DataError, match="'fashion-mnist' is not on this machine"):
        load_dataset("fashion-mnist")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(pixels(3, 4, 4))[:-5], r"promises 3 × 4 × 4 = 48 bytes, but 43 follow"),
        (idx(pixels(3, 4, 4))[:9], "unpack_from requires a buffer"),
        (b"", "unpack_from requires a buffer"),
        (b"<html>not found</html>", "starts with 3c 68 74 6d instead of 00 00 08"),
    ],
    ids=["short", "header only", "empty", "something else"],
)
def test_damaged_idx(data_folder, content, message):
    with pytest.raises(DataError, match=rf"some-idx: .*{message}.*Expected an IDX file.*fetch or copy it again"):
        read_idx(put(data_folder / "some-idx", content))


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"no gzip" + b, lambda b: b[:20] + b"?" * 9])
def test_damaged_gzip(data_folder, damage):
    path = put(data_folder / "some-idx.gz", damage(gzip.compress(idx(pixels(30, 9, 9)))))
    with pytest.raises(DataError, match=r"cannot read .*some-idx\.gz"):
        read_idx(path)


# -------------------------------------------------------------------------------------------------------- rotated MNIST


def amat(x, y):
    lines = io.BytesIO()
    np.savetxt(lines, np.column_stack([x.reshape(len(x), 784), y]), fmt="%.7g")
    return lines.getvalue()


def rotated_splits():
    return [((pixels(num, 28, 28) / 255).astype(np.float32), labels(num)) for num in (20, 30)]


@pytest.mark.parametrize("form", ["amat", "zip", "three npz", "keras npz"])
@pytest.mark.parametrize("folder", ["rotated-mnist", "."])
def test_rotated_mnist(data_folder, form, folder):
    folder = data_folder / folder
    folder.mkdir(exist_ok=True)
    splits = (x_train, y_train), (x_test, y_test) = rotated_splits()
    if form == "amat":
        for name, split in zip(AMAT_FILES, splits, strict=True):
            put(folder / name, amat(*split))
    elif form == "zip":
        with zipfile.ZipFile(folder / AMAT_ZIP, "w") as archive:
            for name, split in zip(AMAT_FILES, splits, strict=True):
                archive.writestr(name, amat(*split))
    elif form == "three npz":
        np.savez(folder / "rotated_train.npz", x=x_train[:15].reshape(15, 784), y=y_train[:15])
        np.savez(folder / "rotated_valid.npz", x=x_train[15:].reshape(5, 784), y=y_train[15:])
        np.savez(folder / "rotated_test.npz", x=x_test.reshape(30, 784), y=y_test)
    else:
        np.savez(folder / "mnist_rotation_new.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
    put_idx(data_folder)  # the real files come before regeneration
    dataset = load_dataset("rotated-mnist")
    np.testing.assert_allclose(dataset.images()[:, 0].numpy(), x_train, atol=1e-6)
    np.testing.assert_allclose(dataset.images("test")[:, 0].numpy(), x_test, atol=1e-6)
    assert dataset.y_train.tolist() == y_train.tolist() and dataset.y_test.tolist() == y_test.tolist()
    assert (dataset.name, dataset.note) == ("rotated-mnist", "")


def test_rotated_mnist_is_regenerated_from_mnist_and_says_so(data_folder):
    put_idx(data_folder / "mnist", num=600, num_test=100)
    dataset = load_dataset("rotated-mnist", seed=3)
    assert (dataset.num_train, dataset.num_test) == (120, 500)
    assert "regenerated from MNIST with seed 3" in dataset.note
    assert torch.equal(load_dataset("rotated-mnist", seed=3).x_test, dataset.x_test)
    assert not torch.equal(load_dataset("rotated-mnist", seed=4).x_test, dataset.x_test)


def test_regenerated_digits_keep_their_labels_and_occur_once(data_folder):
    """An image of one grey level per digit: after a turn, its centre still tells which digit it was."""
    levels = (np.arange(700) % 230 + 20).astype(np.uint8)
    x = levels[:, None, None] * np.ones((1, 28, 28), dtype=np.uint8)
    y = (levels % 10).astype(np.uint8)
    for name, array in zip(IDX_FILES, (x[:600], y[:600], x[600:], y[600:]), strict=True):
        put(data_folder / name, idx(array))
    dataset = load_dataset("rotated-mnist")
    centres = torch.cat([dataset.images("train"), dataset.images("test")])[:, 0, 14, 14].mul(255).round().long()
    found = torch.cat([dataset.labels("train"), dataset.labels("test")])
    assert (centres % 10 == found).all()
    assert (np.bincount(centres, minlength=256) <= np.bincount(levels, minlength=256)).all()
    corners = dataset.images("test")[:, 0, 0, 0]  # outside the disc, a turn brings in black
    assert 0.5 < (corners == 0).float().mean() < 1


def test_a_malformed_amat_is_named(data_folder):
    put(data_folder / AMAT_FILES[0], b"1 2 3\n4 5 6\n")
    put(data_folder / AMAT_FILES[1], amat(*rotated_splits()[1]))
    with pytest.raises(DataError, match=r"train_valid\.amat: its lines have 3 numbers. Expected lines of 784 pixels"):
        load_dataset("rotated-mnist")


# ------------------------------------------------------------------------------------------------------------- CIFAR-10

BATCHES = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]


def binary(x, y):
    return np.column_stack([y, x.reshape(len(x), -1)]).tobytes()


def pickled(x, y):
    content = pickle.dumps({b"data": x.reshape(len(x), -1), b"labels": y.tolist()}, protocol=2)
    return content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")  # its name when CIFAR-10 was made


def tar(members):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, member in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(member)
            archive.addfile(info, io.BytesIO(member))
    return content.getvalue()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("encode", "suffix", "inner", "archive"),
    [
        (binary, ".bin", "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
        (pickled, "", "cifar-10-batches-py", "cifar-10-python.tar.gz"),
    ],
)
def test_cifar10(data_folder, packed, encode, suffix, inner, archive):
    splits = [(pixels(4, 3, 32, 32), labels(4)) for _ in BATCHES]
    members = {f"{inner}/{name}{suffix}": encode(*split) for name, split in zip(BATCHES, splits, strict=True)}
    if packed:
        put(data_folder / "cifar10" / archive, tar({"../evil": b"?", **members}))
    else:
        for name, content in members.items():
            put(data_folder / "cifar10" / name, content)
    dataset = load_dataset("cifar10")
    np.testing.assert_array_equal(dataset.x_train.numpy(), np.concatenate([x for x, _ in splits[:5]]))
    np.testing.assert_array_equal(dataset.x_test.numpy(), splits[5][0])
    assert dataset.y_test.tolist() == splits[5][1].tolist()
    assert dataset.class_names[:2] == ("airplane", "automobile")
    assert not (data_folder / "evil").exists()


def test_cifar10_npz_in_parts_says_so(data_folder):
    x = pixels(20, 32, 32, 3)
    np.savez(data_folder / "cifar10_some.npz", x_train=x, y_train=labels(20)[:, None], x_test=x[:10], y_test=labels(10))
    dataset = load_dataset("cifar10")
    np.testing.assert_array_equal(dataset.x_train.numpy(), np.moveaxis(x, 3, 1))
    assert "cifar10_some.npz: not the complete set" in dataset.note


class Malicious:
    def __reduce__(self):
        return print, ("code from a data file has run",)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (pickle.dumps(Malicious()), "asks for builtins.print"),
        (pickle.dumps({b"data": Malicious(), b"labels": []}), "asks for builtins.print"),
        (pickle.dumps([1, 2]), "no dictionary with data and labels"),
        (pickled(pixels(2, 3, 32, 32), labels(2))[:100], "truncated|Ran out of input"),
    ],
    ids=["code", "code within", "no dictionary", "truncated"],
)
def test_pickles_cannot_run_code(data_folder, batch, message, capsys):
    put(data_folder / "cifar-10-python.tar.gz", tar({f"x/{name}": batch for name in BATCHES}))
    with pytest.raises(DataError, match=message):
        load_dataset("cifar10")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            tar({"cifar-10-batches-bin/data_batch_1.bin": b"1234"}),
            "4 bytes is no whole number of records|no data_batch_2",
        ),
        (tar({"readme": b"hello"}), r"there is no data_batch_1\.bin in it, only readme"),
        (b"<html>", "not a gzip file|could not be opened"),
    ],
    ids=["short batch", "other files", "no archive"],
)
def test_a_damaged_archive_is_named(data_folder, content, message):
    put(data_folder / "cifar-10-binary.tar.gz", content)
    with pytest.raises(DataError, match=rf"cifar-10-binary\.tar\.gz: .*({message})"):
        load_dataset("cifar10")


# ----------------------------------------------------------------------------------------------------------------- PCam


def test_pcam(data_folder):
    h5py = pytest.importorskip("h5py", reason="h5py, of the extra pcam, is not installed")
    arrays = (
        pixels(6, 96, 96, 3),
        labels(6, 2).reshape(6, 1, 1, 1),
        pixels(4, 96, 96, 3),
        labels(4, 2).reshape(4, 1, 1, 1),
    )
    (data_folder / "pcam").mkdir()
    for name, key, array in zip(PCAM_FILES, "xyxy", arrays, strict=True):
        with h5py.File(data_folder / "pcam" / name, "w") as file:
            file[key] = array
    dataset = load_dataset("pcam")
    np.testing.assert_array_equal(dataset.x_train.numpy(), np.moveaxis(arrays[0], 3, 1))
    assert dataset.y_test.tolist() == [0, 1, 0, 1]
    assert dataset.class_names == ("normal", "tumour") and "not the official split" in dataset.note

    with pytest.raises(DataError, match=r"it holds x. Expected an HDF5 file with an array 'z'"):
        read_h5(data_folder / "pcam" / PCAM_FILES[0], "z")
    with pytest.raises(DataError, match=r"broken\.h5: "):
        read_h5(put(data_folder / "broken.h5", b"no HDF5"), "x")


def test_without_h5py_the_extra_is_named(data_folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    for name in PCAM_FILES:
        put(data_folder / name, b"")
    with pytest.raises(DataError, match=r"needs h5py, which is not installed: pip install 'orbitune\[pcam\]'"):
        load_dataset("pcam")


def test_turns_of_regenerated_digits_are_uniform(data_folder):
    """A bright dot off the centre: where it went tells the angle."""
    x = np.zeros((700, 28, 28), dtype=np.uint8)
    x[:, 12:16, 22:26] = 255
    y = labels(700)
    for name, array in zip(IDX_FILES, (x[:600], y[:600], x[600:], y[600:]), strict=True):
        put(data_folder / name, idx(array))
    images = load_dataset("rotated-mnist").images("test")[:, 0]
    axis = torch.arange(28) - 13.5
    angle = torch.atan2((images * axis[:, None]).sum((1, 2)), (images * axis).sum((1, 2))).remainder(2 * math.pi)
    expected = torch.linspace(0, 2 * math.pi, len(angle))
    assert (angle.sort().values - expected).abs().max() < 2 * math.pi * 1.95 / len(angle) ** 0.5  # Kolmogorov, 0.1 %
