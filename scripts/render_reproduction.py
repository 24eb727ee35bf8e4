"""Render docs/reproduction.md from the records in results/."""

from pathlib import Path

from orbitune.experiments import EXPERIMENTS
from orbitune.experiments.page import render

ROOT = Path(__file__).parents[1]

if __name__ == "__main__":
    (ROOT / "docs" / "reproduction.md").write_text(render(EXPERIMENTS, ROOT / "results"))
