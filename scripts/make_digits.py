"""Make ``src/orbitune/data/digits.npz``: a seeded, class-balanced choice of MNIST.

    python scripts/make_digits.py FOLDER

FOLDER holds the four official IDX files of MNIST, gzipped or not.
"""

import argparse
import os
from pathlib import Path

import numpy as np
import torch

from orbitune.data import ImageDataset, load_dataset

TRAIN_PER_CLASS, TEST_PER_CLASS, SEED = 500, 100, 0


def choose(mnist: ImageDataset) -> ImageDataset:
    """The images that are shipped."""
    generator = torch.Generator().manual_seed(SEED)
    return mnist.subset(10 * TRAIN_PER_CLASS, generator, num_test=10 * TEST_PER_CLASS)


def main() -> None:
    """Read FOLDER, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the official IDX files")
    default = Path(__file__).parents[1] / "src" / "orbitune" / "data" / "digits.npz"
    parser.add_argument("--out", type=Path, default=default)
    arguments = parser.parse_args()

    os.environ["ORBITUNE_DATA"] = str(arguments.folder)
    digits = choose(load_dataset("mnist"))
    np.savez_compressed(
        arguments.out,
        x_train=digits.x_train[:, 0].numpy(),
        y_train=digits.y_train.to(torch.uint8).numpy(),
        x_test=digits.x_test[:, 0].numpy(),
        y_test=digits.y_test.to(torch.uint8).numpy(),
        class_names=np.array(digits.class_names),
    )


if __name__ == "__main__":
    main()
