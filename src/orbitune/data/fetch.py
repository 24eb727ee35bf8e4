"""Which data sets can be fetched, from where, and how we know that they arrived whole.

Checksums and sizes are those that torchvision and TensorFlow Datasets check against; for rotated MNIST, that of several
public loaders of the same file.
"""

import gzip
import logging
import os
import shutil
from pathlib import Path

from orbitune.data.download import Progress, RemoteFile, checksum_of, disk_errors, download
from orbitune.data.locations import data_dir
from orbitune.errors import unknown_name

log = logging.getLogger(__name__)

_MNIST_SERVERS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_FASHION_SERVERS = ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",)
_PCAM_SERVERS = ("https://zenodo.org/records/2546921/files/",)
_TORONTO = ("https://www.cs.toronto.edu/~kriz/",)
_MONTREAL = ("http://www.iro.umontreal.ca/~lisa/icml2007data/",)


def _file(servers: tuple[str, ...], name: str, size: int | None, checksum: str, *, gunzip: bool = False) -> RemoteFile:
    return RemoteFile(name, tuple(server + name for server in servers), checksum, size, gunzip)


def _mnist(part: str, size: int, sha256: str) -> RemoteFile:
    return _file(_MNIST_SERVERS, f"{part}-ubyte.gz", size, f"sha256:{sha256}")


def _fashion(part: str, size: int, sha256: str) -> RemoteFile:
    return _file(_FASHION_SERVERS, f"{part}-ubyte.gz", size, f"sha256:{sha256}")


def _pcam(part: str, size: int, sha256: str) -> RemoteFile:
    name = f"camelyonpatch_level_2_split_{part}.h5.gz"
    return _file(_PCAM_SERVERS, name, size, f"sha256:{sha256}", gunzip=True)


REMOTE: dict[str, tuple[RemoteFile, ...]] = {
    "mnist": (
        _mnist("train-images-idx3", 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        _mnist("train-labels-idx1", 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        _mnist("t10k-images-idx3", 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        _mnist("t10k-labels-idx1", 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
    "fashion-mnist": (
        _fashion("train-images-idx3", 26_421_880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        _fashion("train-labels-idx1", 29_515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        _fashion("t10k-images-idx3", 4_422_102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        _fashion("t10k-labels-idx1", 5_148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ),
    "rotated-mnist": (
        # Nobody states its size (about 56 MB).
        _file(_MONTREAL, "mnist_rotation_new.zip", None, "md5:0f9a947ff3d30e95cd685462cbf3b847"),
    ),
    "cifar10": (
        _file(
            _TORONTO,
            "cifar-10-binary.tar.gz",
            170_052_171,
            "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        ),
    ),
    "pcam": (
        _pcam("train_x", 6_421_353_462, "d619e741468a7ab35c7e4a75e6821b7e7e6c9411705d45708f2a0efc8960656c"),
        _pcam("train_y", 21_378, "b74126d2c01b20d3661f9b46765d29cf4e4fba6faba29c8e0d09d406331ab75a"),
        _pcam("test_x", 800_875_929, "79174c2201ad521602a5888be8f36ee10875f37403dd3f2086caf2182ef87245"),
        _pcam("test_y", 3_040, "0a522005fccc8bbd04c5a117bfaf81d8da2676f03a29d7499f71d0a0bd6068ef"),
    ),
}
"""The files of each data set that can be fetched."""


def fetch(name: str, directory: Path | None = None, progress: Progress | None = None) -> tuple[Path, ...]:
    """Fetch a data set into ``<directory>/<name>``, and return the paths of its files.

    Files that are there and have the right checksum are not fetched again; a download that was broken off is
    continued.

    Args:
        name: one of :data:`REMOTE`.
        directory: :func:`orbitune.data.data_dir` by default, where :func:`orbitune.data.load_dataset` looks.
        progress: called with (file name, bytes so far, bytes in all or None) while data arrives.
    """
    if name not in REMOTE:
        raise unknown_name("data set to fetch", name, REMOTE)
    folder = (data_dir() if directory is None else directory) / name
    return tuple(_fetch_file(file, folder, progress) for file in REMOTE[name])


def _fetch_file(file: RemoteFile, folder: Path, progress: Progress | None) -> Path:
    path = folder / file.name
    unpacked = path.with_suffix("")
    if file.gunzip and unpacked.is_file():
        return unpacked  # it got this name when it was whole
    if not (path.is_file() and checksum_of(path, file.checksum) == file.checksum):
        if path.is_file():
            log.warning("%s differs from the published file and is fetched again", path)
        download(file, path, progress)
    if not file.gunzip:
        return path
    part = unpacked.with_name(unpacked.name + ".part")
    with disk_errors(unpacked):
        try:
            with gzip.open(path) as packed, part.open("wb") as output:
                shutil.copyfileobj(packed, output, 1 << 20)
            os.replace(part, unpacked)
        finally:
            part.unlink(missing_ok=True)
        path.unlink()
    return unpacked
