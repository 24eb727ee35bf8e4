"""One entry point for names, folders and files; where data is looked for; the table of data sets."""

import sys
from pathlib import Path

import numpy as np
import pytest

from orbitune.data import CATALOG, REMOTE, data_dir, dataset_table, load_dataset
from orbitune.errors import DataError, InputError


@pytest.fixture(autouse=True)
def data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ORBITUNE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


X, Y = np.random.default_rng(0).integers(256, size=(8, 6, 6), dtype=np.uint8), np.arange(8) % 2

# ------------------------------------------------------------------------------------------------------------- sources


@pytest.mark.parametrize("name", ["digits", "rotated-digits", "ROTATED_digits"])
def test_sets_that_need_no_files(name):
    assert load_dataset(name).num_train == 5000


def test_the_seed_reaches_rotated_digits():
    assert (load_dataset("rotated-digits", seed=1).x_test != load_dataset("rotated-digits", seed=2).x_test).any()


def test_resize_works_for_named_sets_too():
    assert load_dataset("digits", resize=14).image_shape == (1, 14, 14)
    assert load_dataset("digits", resize=(28, 28)).image_shape == (1, 28, 28)


@pytest.mark.parametrize("extra", [{}, {"x_test": X[:2], "y_test": Y[:2]}, {"class_names": np.array(["cat", "dog"])}])
def test_npz(tmp_path, extra):
    np.savez(tmp_path / "mine.npz", x_train=X, y_train=Y, **extra)
    dataset = load_dataset("mine.npz")
    np.testing.assert_array_equal(dataset.x_train[:, 0].numpy(), X)
    assert dataset.name == "mine"
    assert dataset.num_test == len(extra.get("x_test", ()))
    assert dataset.class_names == (("cat", "dog") if "class_names" in extra else ("0", "1"))
    assert load_dataset(tmp_path / "mine.npz", resize=3).image_shape == (1, 3, 3)


def test_an_npz_without_the_keys_lists_what_it_has(tmp_path):
    np.savez(tmp_path / "mine.npz", images=X, labels=Y)
    expected = r"has no x_train and no y_train; expected x_train, y_train, got images \(8, 6, 6\), labels \(8,\)"
    with pytest.raises(DataError, match=expected):
        load_dataset("mine.npz")


def test_an_npz_with_pickles_is_refused(tmp_path):
    np.savez(tmp_path / "mine.npz", x_train=X, y_train=np.array([{}] * 8, dtype=object))
    with pytest.raises(DataError, match=r"cannot read mine\.npz: .*Expected an \.npz file of plain arrays"):
        load_dataset("mine.npz")


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"<html>"])
def test_a_damaged_npz_is_named(tmp_path, damage):
    np.savez(tmp_path / "mine.npz", x_train=X, y_train=Y)
    path = tmp_path / "mine.npz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"cannot read mine\.npz"):
        load_dataset("mine.npz")


def test_an_npy_called_npz_is_refused(tmp_path):
    with (tmp_path / "mine.npz").open("wb") as file:
        np.save(file, X)
    with pytest.raises(DataError, match="one array"):
        load_dataset("mine.npz")


def test_one_class_in_an_npz(tmp_path):
    np.savez(tmp_path / "mine.npz", x_train=X, y_train=np.zeros(8, dtype=int))
    with pytest.raises(DataError, match="all 8 training images have the class '0'"):
        load_dataset("mine.npz")


@pytest.mark.parametrize("source", ["nowhere/images", "missing.npz", Path("missing")])
def test_a_missing_path_is_called_a_path(source):
    with pytest.raises(DataError, match="there is no file or folder"):
        load_dataset(source)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InputError, match=r"unknown data set .*'mnits'; choose one of: cifar10, digits, fashion-mnist"):
        load_dataset("mnits")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "mine.csv").write_text("1,2")
    with pytest.raises(DataError, match=r"neither a folder of images nor an \.npz file"):
        load_dataset("mine.csv")


@pytest.mark.parametrize("resize", [0, (4, -1)])
def test_impossible_sizes_are_refused(resize):
    with pytest.raises(InputError, match="at least one pixel"):
        load_dataset("digits", resize=resize)


@pytest.mark.parametrize("name", REMOTE)
def test_a_set_that_is_not_here_says_how_to_get_it(name, data_folder):
    with pytest.raises(DataError) as raised:
        load_dataset(name)
    message = str(raised.value)
    assert f"orbitune data fetch {name}" in message and str(data_folder / name) in message
    assert "ORBITUNE_DATA" in message


# --------------------------------------------------------------------------------------------------- where data is kept


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"ORBITUNE_DATA": "/data"}, "/data"),
        ("linux", {"ORBITUNE_DATA": "~/data"}, "/home/me/data"),
        ("linux", {}, "/home/me/.cache/orbitune"),
        ("linux", {"XDG_CACHE_HOME": "/cache"}, "/cache/orbitune"),
        ("darwin", {}, "/home/me/Library/Caches/orbitune"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/orbitune"),
        ("win32", {}, "/home/me/AppData/Local/orbitune"),
    ],
)
def test_data_dir(monkeypatch, platform, variables, expected):
    for name in ("ORBITUNE_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr(sys, "platform", platform)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert data_dir() == Path(expected)


def test_the_table_without_any_data():
    rows = {row.name: row for row in dataset_table()}
    assert list(rows) == list(CATALOG)
    assert {name for name, row in rows.items() if row.present} == {"digits", "rotated-digits"}
    assert rows["digits"].size < 1_300_000 and rows["digits"].where.name == "digits.npz"
    assert rows["mnist"].size == 11_594_722
    assert rows["rotated-mnist"].size is None  # not published
    assert all(row.licence for row in rows.values())
    assert all(row.how_to_get == f"orbitune data fetch {name}" for name, row in rows.items() if not row.present)


def test_the_table_finds_files_and_tells_regenerated_from_official(data_folder):
    (data_folder / "mnist").mkdir(parents=True)
    for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
        (data_folder / "mnist" / f"{name}-ubyte").write_bytes(b"1234")
    rows = {row.name: row for row in dataset_table()}
    assert rows["mnist"].present and rows["mnist"].where == data_folder / "mnist" and rows["mnist"].size == 16
    assert rows["rotated-mnist"].present and rows["rotated-mnist"].how_to_get.startswith("regenerated from mnist")
    (data_folder / "rotated-mnist").mkdir()
    (data_folder / "rotated-mnist" / "mnist_rotation_new.zip").write_bytes(b"123")
    assert {row.name: row for row in dataset_table()}["rotated-mnist"].size == 3
