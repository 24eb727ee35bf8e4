"""The benchmarks run, at sizes that measure nothing."""

import importlib
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks_importable(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize("bound", ["gaussian-unbiased", "gaussian-sample", "softmax-sample"])
@pytest.mark.parametrize("phase", ["gp", "network"])
def test_a_step_is_measured_beside_the_bare_network(bound, phase):
    step = importlib.import_module("step")
    row = step.measure(bound, phase, step.Size(3, 2, 5, backward_points=1), repeats=1)
    assert (row["bound"], row["phase"], row["backward_points"]) == (bound, phase, 1)
    for key in ("seconds", "peak_gb", "bare_forward_seconds", "bare_forward_backward_seconds"):
        assert row[key] > 0


def test_the_sweep_is_written_and_plotted(tmp_path, monkeypatch):
    step = importlib.import_module("step")
    monkeypatch.setattr(step, "SMALL", step.Size(3, 2, 5))
    monkeypatch.setitem(step.SIZES, "sweep", [step.SMALL, step.Size(6, 2, 5), step.Size(3, 4, 5), step.Size(3, 2, 9)])
    # In this process: what a fresh one would start with takes longer than the row.
    monkeypatch.setattr(step, "_in_fresh_process", step.measure)
    table, picture = tmp_path / "sweep.json", tmp_path / "sweep.png"
    options = ["--size", "sweep", "--repeats", "1", "--json", str(table), "--plot", str(picture)]
    monkeypatch.setattr(sys, "argv", ["step.py", *options])
    step.main()
    assert len(json.loads(table.read_text())["rows"]) == 8
    assert picture.stat().st_size > 0


def test_a_profile_lists_the_operations_of_a_step(tmp_path, monkeypatch):
    step = importlib.import_module("step")
    step.write_profile(step.Size(3, 2, 5), str(tmp_path / "profile.txt"))
    assert "convolution" in (tmp_path / "profile.txt").read_text()


def test_the_moment_a_range_is_learned_is_when_both_sides_have_passed():
    learn = importlib.import_module("learn")
    over_time = {"seconds": [1.0, 2.0, 3.0], "rotation": {"low": [-0.1, -3.0, -3.1], "high": [0.1, 2.0, 3.0]}}
    assert learn.range_seconds({"ranges_over_time": over_time}) == 3.0
    over_time["rotation"]["high"] = [0.1, 2.0, 2.6]
    assert learn.range_seconds({"ranges_over_time": over_time}) is None


def test_growth_is_measured_and_plotted(tmp_path, monkeypatch):
    scale = importlib.import_module("scale")
    monkeypatch.setattr(scale, "DEFAULT", {"B": 2, "S": 2, "M": 4, "C": 3, "side": 28})
    points = {"N": 40, "side": 14, "predicted images": 30, f"S, {scale.PART} points back": 2 * scale.PART}
    rows = [scale.measure(name, points.get(name, 2)) for name in scale.SWEEPS]
    assert all(row["seconds"] > 0 and row["peak_gb"] > 0 for row in rows)
    scale.plot(rows, tmp_path / "scale.png")
    assert (tmp_path / "scale.png").stat().st_size > 0
