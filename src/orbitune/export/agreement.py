"""Does an export do what the model does? Run it, and compare."""

from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.export.augmentation import render_augmentation
from orbitune.export.onnx_graph import INPUT
from orbitune.export.optional import need
from orbitune.export.predictor import FixedGP, FixedNetwork
from orbitune.orbits import AffineOrbit, Orbit

EXTRAS = {"torch": "", "torchvision": "", "kornia": "kornia", "albumentations": "albumentations"}
"""The extra of Orbitune that brings a library."""

Images = Float[Tensor, "N Ch H W"]
Params = Float[Tensor, "N 7"]


def augmentation_difference(orbit: Orbit, library: str, images: Images, generator: torch.Generator) -> float:
    """Largest absolute difference of a pixel between the orbit's own warp and that of the generated file.

    Both get the same parameters, drawn from the orbit: one vector per image.
    """
    text = render_augmentation(orbit, library)
    need(library, f"running the export for {library}", EXTRAS[library])
    module = run_file(text, f"augmentation_{library}")
    with torch.no_grad():
        params = orbit.sample_params(len(images), 1, generator)
        expected = orbit.transform(images, params)[:, 0]
        got = WARPS[library](module, images, params[:, 0])
    return (got - expected).abs().max().item()


def onnx_difference(
    content: bytes, predictor: FixedGP | FixedNetwork, images: Images, batch_sizes: Sequence[int] = (1, 7)
) -> dict[str, float]:
    """Largest absolute difference of every output between onnxruntime and torch, over batches of some sizes."""
    session = need("onnxruntime", "running an ONNX model", "export").InferenceSession(content)
    worst = dict.fromkeys(predictor.output_names, 0.0)
    for size in batch_sizes:
        batch = images[:size]
        with torch.no_grad():
            expected = predictor(batch)
        got = session.run(list(predictor.output_names), {INPUT: batch.numpy()})
        for name, ours, theirs in zip(predictor.output_names, expected, got, strict=True):
            worst[name] = max(worst[name], float(np.abs(theirs - ours.numpy()).max()))
    return worst


def run_file(text: str, name: str) -> ModuleType:
    """A generated file as a module."""
    module = ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), module.__dict__)
    return module


def _torch(module: ModuleType, images: Images, params: Params) -> Tensor:
    return module.LearnedAugmentation().transform(images, params)


def _torchvision(module: ModuleType, images: Images, params: Params) -> Tensor:
    transform = module.LearnedAugmentation().transform
    pairs = zip(images, params, strict=True)
    return torch.stack([transform(image, {"params": row[None]}) for image, row in pairs])


def _kornia(module: ModuleType, images: Images, params: Params) -> Tensor:
    augment = module.LearnedAugmentation()
    drawn = augment.forward_parameters(images.shape)
    drawn.update(zip(AffineOrbit.names, params.unbind(-1), strict=True))
    return augment(images, params=drawn)


def _albumentations(module: ModuleType, images: Images, params: Params) -> Tensor:
    augment = module.LearnedAugmentation()
    pairs = zip(images.permute(0, 2, 3, 1).numpy(), params.double().numpy(), strict=True)
    warped = np.stack([augment.apply(image, params=row) for image, row in pairs])
    return torch.from_numpy(warped).permute(0, 3, 1, 2)


WARPS: dict[str, Callable[[ModuleType, Images, Params], Tensor]] = {
    "torch": _torch,
    "torchvision": _torchvision,
    "kornia": _kornia,
    "albumentations": _albumentations,
}
"""How the class of a generated file is asked to warp with given parameters."""
