"""A finished run to play with: an image, moved along its orbit and beyond, and what the model makes of it."""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitune.app.images import png_uri
from orbitune.app.refusal import Refused
from orbitune.config import make_config, read_config
from orbitune.errors import CheckpointError, unknown_name
from orbitune.fitting import CONFIG
from orbitune.orbits import UniformOrbit
from orbitune.report.pictures import strip_uri
from orbitune.report.predictions import read_predictions
from orbitune.report.whatif import probabilities_with_band, reach
from orbitune.report.words import extent, reading, verdict_sentences
from orbitune.saving import load_model

ORBIT_SIZE = 32  # points averaged per prediction, as in `orbitune predict`
NUM_DRAWS = 8
NUM_STOPS = 201  # of a slider; odd, so that the middle is exactly zero


class Explorer:
    """The model of a run, asked one question at a time."""

    def __init__(self, directory: Path):
        if not directory.is_dir():
            raise CheckpointError(f"there is no run directory {directory}")
        self.directory = directory
        self.model, self.structure = load_model(directory)
        self.shape = self.structure.image_shape
        if self.shape[0] not in (1, 3):
            raise Refused(f"the app shows images of one or three channels; the model in {directory} takes {self.shape}")
        config = make_config(read_config(directory / CONFIG), str(directory / CONFIG))
        self.squeezes = config.resize is not None  # as those it learned from
        self.learned = config.learned_parameters
        self.predictions = read_predictions(directory)
        if self.predictions is not None:
            self.predictions.check_images(self.shape, directory)
        self._lock = Lock()

    def describe(self) -> dict[str, Any]:
        """What the page shows before anybody touches it."""
        ranges = self.model.orbit.ranges()
        headline, *details = verdict_sentences(ranges, self.learned)
        examples = self._examples()
        return {
            "name": self.directory.resolve().name,
            "directory": str(self.directory),
            "headline": headline,
            "details": " ".join(details),
            "classes": self.structure.class_names,
            "shape": self.shape,
            "squeezes": self.squeezes,
            "orbit_size": ORBIT_SIZE,
            "num_draws": NUM_DRAWS,
            "parameters": [self._parameter(name, *bounds) for name, bounds in ranges.items() if any(bounds)],
            "examples": [{"image": png_uri(image), "label": label} for image, label in examples],
            "sketch": sketch_style([image for image, _ in examples]),
        }

    @torch.no_grad()
    def look(self, image: Float[Tensor, "Ch H W"], params: Mapping[str, float], seed: int = 0) -> dict[str, Any]:
        """The image transformed, its prediction (averaged over its orbit), and draws from that orbit.

        The prediction takes the same points of the orbit every time: it changes with the image, not by chance. The
        seed is that of the draws which are shown.
        """
        orbit = self.model.orbit
        with self._lock:
            moved = self._transform(image, params)
            mean, low, high = probabilities_with_band(
                self.model, moved[None], ORBIT_SIZE, torch.Generator().manual_seed(0)
            )
            draws = orbit(moved[None], NUM_DRAWS, torch.Generator().manual_seed(seed))[0]  # (S, Ch, H, W)
        return {
            "image": png_uri(moved),
            "mean": mean[0].tolist(),
            "low": None if low is None else low[0].clamp(0, 1).tolist(),
            "high": None if high is None else high[0].clamp(0, 1).tolist(),
            "draws": strip_uri((draws.clamp(0, 1) * 255).round().to(torch.uint8).numpy()),
            "num_draws": len(draws),
        }

    def _transform(self, image: Float[Tensor, "Ch H W"], params: Mapping[str, float]) -> Float[Tensor, "Ch H W"]:
        names = self.model.orbit.names
        for name in params:
            if name not in names:
                raise unknown_name("transformation", name, names)
        if not names:  # no orbit: the image as it is
            return image
        values = torch.tensor([[[params.get(name, 0.0) for name in names]]])  # (1, 1, P)
        return self.model.orbit.transform(image[None], values)[0, 0]

    def _parameter(self, name: str, low: float, high: float) -> dict[str, Any]:
        """A slider: its stops as parameter values and in words, and the learned range."""
        assert isinstance(self.model.orbit, UniformOrbit)  # only these have ranges
        shown = reading(name, *self.shape[1:])
        half = NUM_STOPS // 2
        far = reach(self.model.orbit, name)
        values = [far * (i - half) / half for i in range(NUM_STOPS)]
        return {
            "name": name,
            "title": shown.title,
            "low": low,
            "high": high,
            "range": shown.span(low, high),
            "status": extent(name, low, high).value if name in self.learned else "given, not learned",
            "values": values,
            "labels": [shown.value(value) for value in values],
        }

    def _examples(self) -> list[tuple[Tensor, int]]:
        if self.predictions is None:
            return []
        images = torch.from_numpy(self.predictions.example_images).to(torch.float32) / 255
        return list(zip(images, self.predictions.example_labels.tolist(), strict=True))


def sketch_style(images: list[Tensor]) -> dict[str, Any]:
    """How to draw something that looks like the examples: light on dark or dark on light, and how large.

    Returns:
        ``light``: whether the ink is lighter than the ground; ``extent``: the share of the sides that the content of
        an example takes up, 1 if it has no empty margin.
    """
    if not images:
        return {"light": True, "extent": 1.0}
    stack = torch.stack(images).mean(1)  # (E, H, W), grey
    border = torch.cat((stack[:, 0], stack[:, -1], stack[:, :, 0], stack[:, :, -1]), dim=1)  # (E, …)
    ground = border.median()
    ink = (stack - ground).abs() > 0.25
    rows, columns = ink.any(2).float().mean(1), ink.any(1).float().mean(1)  # (E,), shares of rows and columns with ink
    taken = float(torch.maximum(rows, columns).mean())
    return {"light": bool(ground < 0.5), "extent": round(min(1.0, max(0.3, taken)), 2)}
