"""The well-known data sets, in whichever of their usual files they lie in the data directory."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from orbitune.data.arrays import from_arrays
from orbitune.data.cifar import Batch, read_binary_batches, read_pickled_batches
from orbitune.data.dataset import ImageDataset
from orbitune.data.formats import read_amat, read_h5, read_idx, read_npz
from orbitune.data.locations import Reader, Source, data_dir, find_together
from orbitune.data.npz import load_npz
from orbitune.data.planting import plant

DIGITS = tuple("0123456789")
CLOTHES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
AMAT_FILES = tuple(f"mnist_all_rotation_normalized_float_{split}.amat" for split in ("train_valid", "test"))
AMAT_ZIP = "mnist_rotation_new.zip"
CIFAR_FOLDERS = ("cifar10", "cifar-10", ".")
CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
PCAM_FILES = tuple(f"camelyonpatch_level_2_split_{split}_{xy}.h5" for split in ("train", "test") for xy in "xy")
PCAM_TRAIN = 262_144  # patches in the official training split


def find_mnist() -> Source | None:
    """MNIST as IDX files; torchvision's folder will do."""
    return _find_idx("mnist", ("mnist", "MNIST/raw", "."), DIGITS)


def find_fashion_mnist() -> Source | None:
    """Fashion-MNIST as IDX files, never directly in the data directory: their names are those of MNIST."""
    return _find_idx("fashion-mnist", ("fashion-mnist", "fashion_mnist", "FashionMNIST/raw"), CLOTHES)


def _find_idx(name: str, folders: Sequence[str], class_names: Sequence[str]) -> Source | None:
    files = find_together(folders, IDX_FILES, or_gz=True)
    if files is None:
        return None
    return Source(files, lambda files, _: from_arrays(*map(read_idx, files), name=name, class_names=class_names))


def find_rotated_mnist() -> Source | None:
    """Rotated MNIST: the official text files or their zip, an npz of them, or else MNIST to make it anew from."""
    folders = ("rotated-mnist", "rotated_mnist", "mnist_rotation_new", ".")
    forms: tuple[tuple[tuple[str, ...], Reader], ...] = (
        (AMAT_FILES, lambda files, _: _rotated_mnist([read_amat(file) for file in files])),
        ((AMAT_ZIP,), lambda files, _: _rotated_mnist([read_amat(files[0], member) for member in AMAT_FILES])),
        (("rotated_train.npz", "rotated_valid.npz", "rotated_test.npz"), lambda files, _: _rotated_mnist(_flat(files))),
        (("rotated-mnist.npz",), lambda files, _: load_npz(files[0], class_names=DIGITS)),
        (("mnist_rotation_new.npz",), lambda files, _: load_npz(files[0], name="rotated-mnist", class_names=DIGITS)),
    )
    for names, read in forms:
        if files := find_together(folders, names):
            return Source(files, read)
    upright = find_mnist()
    if upright is None:
        return None
    return Source(upright.files, lambda _, seed: regenerate_rotated_mnist(upright.load(seed), seed))


def _rotated_mnist(splits: list[tuple[np.ndarray, np.ndarray]]) -> ImageDataset:
    (x_train, y_train), (x_test, y_test) = splits
    return from_arrays(x_train, y_train, x_test, y_test, name="rotated-mnist", class_names=DIGITS)


def _flat(files: Sequence[Path]) -> list[tuple[np.ndarray, np.ndarray]]:
    """The copy that circulates with group-convolution code: flat images x, labels y, 10,000 + 2,000 + 50,000."""
    contents = [read_npz(file, required=("x", "y")) for file in files]
    (x, y), (x_valid, y_valid), test = ((content["x"].reshape(-1, 28, 28), content["y"]) for content in contents)
    return [(np.concatenate([x, x_valid]), np.concatenate([y, y_valid])), test]


def regenerate_rotated_mnist(mnist: ImageDataset, seed: int) -> ImageDataset:
    """Rotated MNIST by its published recipe: 62,000 of the 70,000 digits, each turned by an angle from U(0, 2π).

    12,000 of them are for training, 50,000 for testing; of an incomplete MNIST, the same proportions. Interpolation
    is bilinear. Which digits and which angles the official files have is not known, so numbers need not agree with
    theirs; the ``note`` says so.
    """
    generator = torch.Generator().manual_seed(seed)
    total = mnist.num_train + mnist.num_test
    num = total * 62 // 70
    num_train = num * 12 // 62
    chosen = torch.randperm(total, generator=generator)[:num]
    images = torch.cat([mnist.images("train"), mnist.images("test")])[chosen]
    labels = torch.cat([mnist.y_train, mnist.labels("test")])[chosen]
    rotated = plant(images, {"rotation": (0.0, 2 * math.pi)}, generator)
    return ImageDataset(
        "rotated-mnist",
        rotated[:num_train],
        labels[:num_train],
        rotated[num_train:],
        labels[num_train:],
        mnist.class_names,
        note=f"regenerated from MNIST with seed {seed}; not the official files",
    )


def find_cifar10() -> Source | None:
    """CIFAR-10: the binary version, an npz in Keras' layout, or the Python version (torchvision's), in this order."""
    return (
        _find_cifar_batches("cifar-10-batches-bin", CIFAR_ARCHIVE, ".bin", read_binary_batches)
        or _find_cifar_npz()
        or _find_cifar_batches("cifar-10-batches-py", "cifar-10-python.tar.gz", "", read_pickled_batches)
    )


def _find_cifar_batches(unpacked: str, archive: str, suffix: str, read: Callable[..., Batch]) -> Source | None:
    train, test = [f"data_batch_{i}{suffix}" for i in range(1, 6)], [f"test_batch{suffix}"]

    def load(path: Path) -> ImageDataset:
        return from_arrays(*read(path, train), *read(path, test), name="cifar10", class_names=CIFAR10)

    if files := find_together([f"{folder}/{unpacked}" for folder in CIFAR_FOLDERS], [*train, *test]):
        return Source(files, lambda files, _: load(files[0].parent))
    if files := find_together(CIFAR_FOLDERS, [archive]):
        return Source(files, lambda files, _: load(files[0]))
    return None


def _find_cifar_npz() -> Source | None:
    paths = [path for folder in CIFAR_FOLDERS for path in sorted((data_dir() / folder).glob("cifar10*.npz"))]
    return Source((paths[0],), _load_cifar_npz) if paths else None


def _load_cifar_npz(files: Sequence[Path], _: int) -> ImageDataset:
    dataset = load_npz(files[0], name="cifar10", class_names=CIFAR10)
    if (dataset.num_train, dataset.num_test) == (50_000, 10_000):
        return dataset
    return replace(dataset, note=f"{files[0].name}: not the complete set of 50,000 + 10,000 images")


def find_pcam() -> Source | None:
    """PatchCamelyon as the official HDF5 files; the validation split is not used."""
    files = find_together(("pcam", "."), PCAM_FILES)
    return None if files is None else Source(files, _load_pcam)


def _load_pcam(files: Sequence[Path], _: int) -> ImageDataset:
    arrays = [read_h5(file, key) for file, key in zip(files, "xyxy", strict=True)]
    dataset = from_arrays(*arrays, name="pcam", class_names=("normal", "tumour"))
    if dataset.num_train == PCAM_TRAIN:
        return dataset
    return replace(dataset, note="not the official split; patches of one slide may be on both sides")
