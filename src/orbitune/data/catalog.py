"""All data sets by name, and one function that loads any of them, or your own."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from orbitune.data.dataset import ImageDataset
from orbitune.data.digits import DIGITS_FILE, load_digits, rotated_digits
from orbitune.data.fetch import REMOTE
from orbitune.data.folder import load_folder
from orbitune.data.locations import Source, data_dir
from orbitune.data.npz import load_npz
from orbitune.data.standard import find_cifar10, find_fashion_mnist, find_mnist, find_pcam, find_rotated_mnist
from orbitune.errors import DataError, InputError, unknown_name


@dataclass(frozen=True)
class Entry:
    """A data set we know by name."""

    find: Callable[[], Source | None]
    licence: str


@dataclass(frozen=True)
class DatasetRow:
    """What ``orbitune data list`` says about a data set."""

    name: str
    present: bool
    where: Path | None
    """The folder its files are in, or the file if it is one; None if there are none."""
    size: int | None
    """Bytes: of its files if present, else of what would be fetched, if known."""
    licence: str
    how_to_get: str


CATALOG: dict[str, Entry] = {
    "digits": Entry(
        lambda: Source((DIGITS_FILE,), lambda _files, _seed: load_digits()),
        "CC BY-SA 3.0 (part of MNIST; LeCun, Cortes, Burges)",
    ),
    "rotated-digits": Entry(
        lambda: Source((DIGITS_FILE,), lambda _files, seed: rotated_digits(seed=seed)),
        "CC BY-SA 3.0 (made from part of MNIST; LeCun, Cortes, Burges)",
    ),
    "mnist": Entry(find_mnist, "CC BY-SA 3.0 (LeCun, Cortes, Burges)"),
    "rotated-mnist": Entry(find_rotated_mnist, "none stated (Larochelle et al. 2007; made from MNIST, CC BY-SA 3.0)"),
    "fashion-mnist": Entry(find_fashion_mnist, "MIT (Zalando SE)"),
    "cifar10": Entry(find_cifar10, "none stated (cite Krizhevsky 2009)"),
    "pcam": Entry(find_pcam, "CC0 (Veeling et al. 2018, from Camelyon16)"),
}


def known_name(source: str | Path) -> str | None:
    """The name in the catalog that is meant, or None: something on the disk is."""
    name = str(source).lower().replace("_", "-")
    return name if isinstance(source, str) and name in CATALOG else None


def load_dataset(source: str | Path, *, seed: int = 0, resize: int | tuple[int, int] | None = None) -> ImageDataset:
    """Load a data set by its name, from a folder of images, or from an ``.npz`` file.

    Args:
        source: a name ("digits", "rotated-digits", "mnist", "rotated-mnist", "fashion-mnist", "cifar10", "pcam"),
            looked up in :func:`data_dir`; or the path of a folder (see :func:`load_folder`) or of an ``.npz`` file
            (see :func:`load_npz`). A name comes before a path: write ``./mnist`` for a folder called so.
        seed: for the sets that are made by chance, "rotated-digits" and "rotated-mnist" when regenerated.
        resize: the side or (H, W) all images are brought to.
    """
    size = _checked_size(resize)
    name = known_name(source)
    if name is not None:
        found = CATALOG[name].find()
        if found is None:
            raise _missing(name)
        dataset = found.load(seed)
    else:
        path = Path(source).expanduser()
        if path.is_dir():
            return load_folder(path, resize=size)
        if not path.is_file():
            raise _no_such(source, path)
        if path.suffix.lower() != ".npz":
            raise DataError(f"{path} is neither a folder of images nor an .npz file; expected one of them, or a name")
        dataset = load_npz(path)
    return dataset if size is None or size == dataset.image_shape[1:] else dataset.resized(*size)


def dataset_table() -> list[DatasetRow]:
    """One row for each data set we know: whether it is here, where, how large, its licence, and how to get it."""
    return [_row(name, entry) for name, entry in CATALOG.items()]


def _row(name: str, entry: Entry) -> DatasetRow:
    found = entry.find()
    if found is None:
        sizes = [file.size for file in REMOTE[name]]
        size = None if None in sizes else sum(size for size in sizes if size is not None)
        return DatasetRow(name, False, None, size, entry.licence, f"orbitune data fetch {name}")
    where = found.files[0] if len(found.files) == 1 else found.files[0].parent
    if name == "rotated-mnist" and found.files[0].name.startswith("train-images"):
        how = "regenerated from mnist; the official files: orbitune data fetch rotated-mnist"
    elif name == "rotated-digits":
        how = "made from digits"
    else:
        how = "part of orbitune" if name == "digits" else ""
    return DatasetRow(name, True, where, sum(file.stat().st_size for file in found.files), entry.licence, how)


def _missing(name: str) -> DataError:
    files = ", ".join(file.name.removesuffix(".gz") if file.gunzip else file.name for file in REMOTE[name])
    also = ". With mnist there, it is regenerated from that" if name == "rotated-mnist" else ""
    return DataError(
        f"the data set {name!r} is not on this machine: no {files} in {data_dir() / name}. Fetch it with `orbitune "
        f"data fetch {name}`, put the files there, or set ORBITUNE_DATA to the folder in which {name}/ lies{also}"
    )


def _no_such(source: str | Path, path: Path) -> InputError:
    if isinstance(source, Path) or len(path.parts) > 1 or path.suffix:
        return DataError(f"there is no file or folder {path} (looked from {Path.cwd()})")
    return unknown_name("data set (nor is there a folder or file of that name)", source, CATALOG)


def _checked_size(resize: int | tuple[int, int] | None) -> tuple[int, int] | None:
    size = (resize, resize) if isinstance(resize, int) else resize
    if size is not None and min(size) < 1:
        raise InputError(f"resize must be a side or (height, width) of at least one pixel, got {resize}")
    return size
