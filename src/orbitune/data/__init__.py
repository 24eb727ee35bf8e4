"""Images to learn from: a small set inside the package, the well-known ones, and your own."""

from orbitune.data.arrays import from_arrays
from orbitune.data.catalog import CATALOG, DatasetRow, dataset_table, load_dataset
from orbitune.data.dataset import ImageDataset
from orbitune.data.digits import load_digits, rotated_digits
from orbitune.data.fetch import REMOTE, fetch
from orbitune.data.folder import load_folder
from orbitune.data.items import from_items
from orbitune.data.locations import data_dir
from orbitune.data.npz import load_npz
from orbitune.data.planting import plant, plant_dataset

__all__ = [
    "CATALOG",
    "REMOTE",
    "DatasetRow",
    "ImageDataset",
    "data_dir",
    "dataset_table",
    "fetch",
    "from_arrays",
    "from_items",
    "load_dataset",
    "load_digits",
    "load_folder",
    "load_npz",
    "plant",
    "plant_dataset",
    "rotated_digits",
]
