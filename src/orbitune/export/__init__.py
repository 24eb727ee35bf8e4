"""What was learned, for use elsewhere: the augmentation as code for other libraries, the predictor as an ONNX graph."""

from orbitune.export.agreement import augmentation_difference, onnx_difference
from orbitune.export.augmentation import LIBRARIES, describe_augmentation, render_augmentation
from orbitune.export.onnx_graph import to_onnx
from orbitune.export.predictor import FixedGP, FixedNetwork, fixed_predictor

__all__ = [
    "LIBRARIES",
    "FixedGP",
    "FixedNetwork",
    "augmentation_difference",
    "describe_augmentation",
    "fixed_predictor",
    "onnx_difference",
    "render_augmentation",
    "to_onnx",
]
