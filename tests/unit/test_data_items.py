"""Data sets of PyTorch, torchvision and Hugging Face, item by item."""

import io
from types import MappingProxyType

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from orbitune.data import allocation, from_items
from orbitune.errors import DataError

PIXELS = np.random.default_rng(0).integers(256, size=(8, 5, 4), dtype=np.uint8)
LABELS = [0, 1, 2, 1, 0, 1, 2, 2]


class Pictures(Dataset):
    """Like those of torchvision: Pillow's images, and names of the classes."""

    classes = ("cat", "dog", "owl")

    def __init__(self, mode="L", size=None):
        self.mode, self.size = mode, size

    def __len__(self):
        return len(LABELS)

    def __getitem__(self, i):
        if i >= len(self):
            raise IndexError
        image = Image.fromarray(PIXELS[i]).convert(self.mode)
        return image if self.size is None else image.resize((4 + i, 5)), LABELS[i]


class ClassLabel:
    names = ("cat", "dog", "owl")


class HubDataset(list):
    """Like those of Hugging Face: mappings, and features that know the classes."""

    features = MappingProxyType({"img": None, "fine_label": ClassLabel()})


def test_a_tensor_dataset():
    images = torch.from_numpy(PIXELS)[:, None] / 255
    dataset = from_items(TensorDataset(images, torch.tensor(LABELS)), TensorDataset(images[:2], torch.tensor([2, 0])))
    assert torch.equal(dataset.images(), images) and dataset.labels().tolist() == LABELS
    assert dataset.labels("test").tolist() == [2, 0] and dataset.class_names == ("0", "1", "2")


@pytest.mark.parametrize(("mode", "channels"), [("L", 1), ("RGB", 3)])
def test_pictures_with_named_classes(mode, channels):
    dataset = from_items(Pictures(mode), name="zoo")
    assert dataset.x_train.dtype == torch.uint8 and dataset.image_shape == (channels, 5, 4)
    assert torch.equal(dataset.x_train[:, channels - 1], torch.from_numpy(PIXELS))
    assert dataset.class_names == ("cat", "dog", "owl") and dataset.name == "zoo"


def test_a_subset_and_a_list():
    images = torch.from_numpy(PIXELS)[:, None]
    whole = TensorDataset(images, torch.tensor(LABELS))
    assert from_items(Subset(whole, [0, 1, 3])).labels().tolist() == [0, 1, 1]
    pairs = [(PIXELS[i], ["cat", "dog"][i % 2]) for i in range(8)]
    dataset = from_items(pairs)
    assert dataset.class_names == ("cat", "dog") and dataset.labels().tolist() == [0, 1] * 4


def test_mappings_with_the_usual_names_and_with_others():
    items = HubDataset({"img": Image.fromarray(p), "fine_label": y} for p, y in zip(PIXELS, LABELS, strict=True))
    dataset = from_items(items)
    assert dataset.class_names == ("cat", "dog", "owl") and dataset.labels().tolist() == LABELS
    renamed = [{"scan": item["img"], "finding": item["fine_label"]} for item in items]
    assert torch.equal(from_items(renamed, image="scan", label="finding").x_train, dataset.x_train)
    with pytest.raises(DataError, match=r'has the keys scan, finding; say which .* image="…"'):
        from_items(renamed)


def test_sizes_that_differ_are_brought_to_one():
    with pytest.raises(DataError, match=r"item 1 is uint8 of shape \(1, 5, 5\).*item 0.*\(1, 5, 4\).*resize="):
        from_items(Pictures(size="each its own"))
    assert from_items(Pictures(size="each its own"), resize=6).image_shape == (1, 6, 6)
    assert from_items(Pictures(size="each its own"), resize=(3, 6)).image_shape == (1, 3, 6)


def test_many_items_go_to_a_file(monkeypatch):
    monkeypatch.setattr(allocation, "MAX_IN_MEMORY", 10)
    rooms = []
    allocate = allocation.allocate
    monkeypatch.setattr("orbitune.data.items.allocate", lambda *room: rooms.append(allocate(*room)) or rooms[-1])
    dataset = from_items(Pictures())
    assert [type(room) for room in rooms] == [np.memmap]
    assert torch.equal(dataset.x_train[:, 0], torch.from_numpy(PIXELS))


class Endless(IterableDataset):
    def __iter__(self):
        yield PIXELS[0], 0


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (Endless(), "has no length"),
        ([], "there are no items"),
        ([3, 4], "is int; expected"),
        ([(PIXELS[0],)], "is tuple; expected"),
        ([("a.png", 0)], "expected an image of Pillow or an array, got str"),
        ([(PIXELS[0], np.zeros(3))], "expected one class as label"),
        ([(PIXELS[0], 0), (PIXELS[1] / 255, 1)], "expected all alike"),
        ([(PIXELS[0], 0), (PIXELS[1], 0)], "have the class '0'"),
        ([(np.zeros(5), 0)], "images must have shape"),
        ([(torch.full((1, 5, 4), 7.0), 0), (torch.zeros(1, 5, 4), 1)], "range from 0 to 7"),
        ([(Image.fromarray(PIXELS[0].astype(np.float32)), 0)], "floating-point pixels"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(items, message):
    with pytest.raises(DataError, match=message):
        from_items(items)


@pytest.mark.filterwarnings("default")  # of its own dependencies
def test_hugging_face_itself():
    datasets, arrow = pytest.importorskip("datasets"), pytest.importorskip("pyarrow")
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog", "owl"])})
    files = []
    for pixels in PIXELS:
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG")
        files.append({"bytes": file.getvalue(), "path": None})
    table = arrow.table({"image": arrow.array(files, type=features["image"].pa_type), "label": arrow.array(LABELS)})
    info = datasets.DatasetInfo(features=features)
    items = datasets.Dataset(datasets.table.InMemoryTable(table), info=info, fingerprint="test")
    dataset = from_items(items)
    assert dataset.class_names == ("cat", "dog", "owl") and torch.equal(dataset.x_train[:, 0], torch.from_numpy(PIXELS))
