"""Make ``results/export.json``: how far every export is from the model, by running it.

    python scripts/measure_exports.py

Augmentations: 100 images, each with parameters drawn from wide ranges, warped by the generated file and by the orbit.
Noise is the worst case of an interpolation, digits an ordinary one. ONNX: onnxruntime against torch, and the fixed
averages inside the graph against many more points.
"""

import argparse
import importlib
import math
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import get_args

import torch

from orbitune import build_model, natural_gradient_step, sample_elbo
from orbitune.backbones import MnistCNN
from orbitune.data import load_dataset
from orbitune.export import LIBRARIES, augmentation_difference, fixed_predictor, onnx_difference, to_onnx
from orbitune.likelihoods import Softmax
from orbitune.orbits import AffineOrbit
from orbitune.orbits.warp import Padding
from orbitune.provenance import commit, machine, write_json

RANGES = {
    "rotation": (-math.pi, math.pi),
    "log_scale_x": (-0.4, 0.4),
    "log_scale_y": (-0.4, 0.4),
    "shear_x": (-0.5, 0.5),
    "shear_y": (-0.5, 0.5),
    "translate_x": (-0.5, 0.5),
    "translate_y": (-0.5, 0.5),
}
NUM_IMAGES, SEED = 100, 0
DISTRIBUTIONS = ("torch", "torchvision", "kornia", "albumentations", "opencv-python-headless", "onnxruntime")


def augmentations(libraries: list[str]) -> dict[str, dict[str, float]]:
    """Largest pixel difference by library, then by images and padding."""
    generator = torch.Generator().manual_seed(SEED)
    images = {
        "noise 1×28×28": torch.rand(NUM_IMAGES, 1, 28, 28, generator=generator),
        "noise 3×33×47": torch.rand(NUM_IMAGES, 3, 33, 47, generator=generator),
        "digits": load_dataset("digits").images("test")[:NUM_IMAGES],
    }
    return {
        library: {
            f"{kind}, {padding}": augmentation_difference(
                AffineOrbit(RANGES, padding=padding), library, batch, torch.Generator().manual_seed(SEED)
            )
            for kind, batch in images.items()
            for padding in get_args(Padding)
        }
        for library in libraries
    }


def predictor() -> dict[str, dict[str, float]]:
    """A GP on digits with random features: onnxruntime against torch, and fixed averages against finer ones."""
    generator = torch.Generator().manual_seed(SEED)
    digits = load_dataset("digits")
    images, labels, test = digits.images("train")[:500], digits.labels("train")[:500], digits.images("test")[:50]
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        backbone = MnistCNN()
    orbit = AffineOrbit({"rotation": (-0.5, 0.5)})
    model = build_model(orbit, backbone, Softmax(10), images, num_inducing=100, generator=generator)
    model.head.kernel.outputscale = 20.0
    for _ in range(5):
        terms = sample_elbo(model, images, labels, num_data=500, orbit_size=4, generator=generator)
        natural_gradient_step(model, terms, rate=0.5, generator=generator)
    default = fixed_predictor(model)
    content = to_onnx(default, (1, 28, 28))
    with torch.no_grad():
        fine = fixed_predictor(model, orbit_size=256, num_f_samples=4096, seed=1)
        reference = torch.cat([fine(chunk)[0] for chunk in test.split(8)])
        error = (default(test)[0] - reference).abs()
    return {
        "onnxruntime against torch": onnx_difference(content, default, test, (1, 7)),
        "32 orbit points and 256 points in f against 256 and 4096, probabilities": {
            "mean": error.mean().item(),
            "max": error.max().item(),
        },
    }


def main() -> None:
    """Measure what is installed, say what is not, write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "export.json")
    parser.add_argument("--only", choices=LIBRARIES, help="one library, and no ONNX")
    arguments = parser.parse_args()

    os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # it would ask the network for its latest version
    asked = [arguments.only] if arguments.only else list(LIBRARIES)
    installed = [library for library in asked if importable(library)]
    result = {
        "versions": {name: installed_version(name) for name in DISTRIBUTIONS},
        "not installed, not run": [library for library in asked if library not in installed],
        "largest pixel difference": augmentations(installed),
    }
    if not arguments.only:
        result["onnx"] = predictor()
    config = {"ranges": RANGES, "num_images": NUM_IMAGES}
    provenance = {"commit": commit(), "machine": machine()}
    write_json(arguments.out, {"experiment": "export", "config": config, "seed": SEED, **result, **provenance})


def importable(library: str) -> bool:
    """Whether a library is there."""
    try:
        importlib.import_module(library)
    except ImportError:
        return False
    return True


def installed_version(distribution: str) -> str | None:
    """Its version, or None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
