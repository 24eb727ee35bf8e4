"""The fixed predictor as an ONNX graph, orbit average included."""

import json
import logging
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import gpytorch
import torch
from torch.overrides import TorchFunctionMode

from orbitune.errors import ExportError
from orbitune.export.optional import need
from orbitune.export.predictor import FixedGP, FixedNetwork

INPUT = "images"


def to_onnx(
    predictor: FixedGP | FixedNetwork, image_shape: tuple[int, int, int], metadata: Mapping[str, Any] | None = None
) -> bytes:
    """A serialised ONNX model: ``images`` (N, Ch, H, W) in single precision → the predictor's outputs, for any N ≥ 1.

    The last layer is computed in double precision inside the graph, as in training.

    Args:
        predictor: see :func:`orbitune.export.fixed_predictor`.
        image_shape: (channels, height, width).
        metadata: written into the file as JSON strings (``metadata_props``).
    """
    need("onnx", "ONNX export", "export")
    need("onnxscript", "ONNX export", "export")
    # Two images: torch.export would take a batch of one for a constant.
    example = torch.zeros(2, *image_shape)
    try:
        with quiet_exporter(), torch.no_grad(), gpytorch.settings.trace_mode(), KernelsAsGraphs():
            program = torch.onnx.export(
                predictor,
                (example,),
                dynamo=True,
                verbose=False,
                input_names=[INPUT],
                output_names=list(predictor.output_names),
                dynamic_shapes=({0: torch.export.Dim("N", min=1)},),
            )
    except (torch.onnx.OnnxExporterError, RuntimeError) as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise ExportError(
            f"torch could not turn this model into an ONNX graph: {reason}. Likely causes: (a) a network, kernel or "
            "orbit of your own whose operations depend on values, or have no ONNX counterpart; (b) a version of torch "
            "older than the installed onnxscript expects"
        ) from error
    if program is None:
        raise ExportError("torch.onnx.export returned nothing")
    for key, value in (metadata or {}).items():
        program.model.metadata_props[key] = json.dumps(value)
    return program.model_proto.SerializeToString()


class KernelsAsGraphs(TorchFunctionMode):
    """Lets GPyTorch's kernels be followed, which do two things that a graph cannot.

    They ask whether their two arguments hold the same values, to save work: "no" is always right. And some take
    distances with ``torch.cdist``, which ONNX does not have: ‖x − y‖ = √(‖x‖² + ‖y‖² − 2xᵀy).
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Everything else goes its way."""
        if func is torch.equal:
            return False
        if func is torch.cdist:
            x, y = args
            squared = x.square().sum(-1, keepdim=True) + y.square().sum(-1, keepdim=True).mT - 2 * x @ y.mT
            return squared.clamp_min(0).sqrt()
        return func(*args, **(kwargs or {}))


@contextmanager
def quiet_exporter() -> Generator[None]:
    """Without torch's remarks to itself: deprecations inside torch, and that torchvision is not there."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
