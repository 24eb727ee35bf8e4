"""Pictures of a run: samples of the learned orbit, and the ranges over time."""

import json
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from orbitune.inputs import Inputs
from orbitune.orbits import Orbit
from orbitune.training.run import HISTORY


def save_pictures(
    directory: Path, orbit: Orbit, images: Inputs, class_names: tuple[str, ...], labels: Tensor
) -> list[Path]:
    """orbit.png and ranges.png in a run directory."""
    orbit_path, ranges_path = directory / "orbit.png", directory / "ranges.png"
    shown = one_per_class(labels, 5)
    plot_orbit(orbit, images[shown], [class_names[int(label)] for label in labels[shown]]).savefig(orbit_path, dpi=110)
    plot_ranges(read_history(directory)).savefig(ranges_path, dpi=110)
    return [orbit_path, ranges_path]


def one_per_class(labels: Tensor, most: int) -> Tensor:
    """Places of up to ``most`` images of different classes, the first of each; of fewer classes, others after them."""
    first: dict[int, int] = {}
    for place, label in enumerate(labels.tolist()):
        first.setdefault(label, place)
    others = sorted(set(range(len(labels))) - set(first.values()))
    return torch.tensor(sorted([*first.values(), *others][:most]))


@torch.no_grad()
def plot_orbit(orbit: Orbit, images: Tensor, names: list[str], num_samples: int = 10) -> Figure:
    """Each image (B, Ch, H, W), framed, and draws from its orbit beside it."""
    points = orbit(images, num_samples, torch.Generator().manual_seed(0))  # (B, S, Ch, H, W)
    figure = Figure(figsize=(0.8 * (points.shape[1] + 1), 0.85 * len(images) + 0.4), layout="constrained")
    axes = figure.subplots(len(images), points.shape[1] + 1, squeeze=False)
    for row, (image, draws, name) in enumerate(zip(images, points, names, strict=True)):
        for column, picture in enumerate((image, *draws)):
            axis = axes[row, column]
            shown = picture.clamp(0, 1).movedim(0, -1).cpu().numpy()
            axis.imshow(shown[..., 0] if shown.shape[-1] == 1 else shown[..., :3], cmap="gray", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
            if column == 0:
                axis.set_ylabel(name, rotation=0, ha="right", va="center")
                for side in axis.spines.values():
                    side.set(color="C3", linewidth=2)
    figure.suptitle("Training images (red) and what they may become without changing their label", fontsize=10)
    return figure


def plot_ranges(history: list[dict[str, Any]]) -> Figure:
    """The bounds of every range at each step at which they moved or could have moved."""
    records = [record for record in history if "ranges" in record]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    names = list(records[-1]["ranges"]) if records else []
    for index, name in enumerate(names):
        points = [(r["seconds"], *r["ranges"][name]) for r in records if name in r["ranges"]]
        seconds, low, high = zip(*points, strict=True)
        axis.fill_between(seconds, low, high, color=f"C{index}", alpha=0.25, lw=0)
        axis.plot(seconds, high, color=f"C{index}", label=name.replace("_", " "))
        axis.plot(seconds, low, color=f"C{index}")
    axis.set(xlabel="seconds", ylabel="learned range", title="Ranges over time")
    axis.axhline(0, color="0.7", lw=0.5)
    if names:
        axis.legend(fontsize=8, frameon=False, loc="upper left")
    return figure


def read_history(directory: Path) -> list[dict[str, Any]]:
    """The lines of history.jsonl; one that is being written at this moment is left out."""
    text = (directory / HISTORY).read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
