"""Charts and pictures of the report: escaping, geometry, and what is drawn."""

import base64
import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from markupsafe import Markup
from PIL import Image

from orbitune.report.charts import confusion_chart, objective_chart, range_chart, reliability_chart, sweep_chart
from orbitune.report.history import Path, join, range_path, smooth, split_phases, warnings_of
from orbitune.report.pictures import data_uri, strip_uri
from orbitune.report.plots import one_per_class
from orbitune.report.scores import score
from orbitune.report.svg import Axes, drawing, tag, ticks
from orbitune.report.whatif import Curve, Sweep
from orbitune.report.words import reading

NASTY = "<script>alert(\"&')</script>"


def parse(chart):
    assert isinstance(chart, Markup)
    root = ET.fromstring(str(chart))
    assert root.tag == "svg" and root.find("title").text and root.find("desc").text and root.get("aria-label")
    return root


def test_text_and_attributes_are_escaped():
    element = tag("text", NASTY, class_=NASTY)
    root = ET.fromstring(str(element))
    assert root.text == NASTY and root.get("class") == NASTY and len(root) == 0
    assert len(parse(drawing(NASTY, "x", 10.0))) == 2


def test_names_of_classes_cannot_break_out_of_a_chart():
    names = [NASTY, "b"]
    root = parse(confusion_chart(np.array([[3, 1], [0, 2]]), names))
    assert not [element for element in root.iter() if element.tag == "script"]
    curve = Curve(0, torch.tensor([0.1, 0.9, 0.2]), None, None)
    sweep = Sweep("rotation", torch.tensor([-1.0, 0, 1]), (), curve, Curve(1, curve.mean, None, None))
    root = parse(sweep_chart(reading("rotation"), sweep, (-0.5, 0.5), names))
    assert NASTY in root.find("desc").text and not list(root.iter("script"))


def test_axes_put_data_where_they_belong():
    axes = Axes((0.0, 10.0), (-1.0, 1.0), left=50.0, right=350.0, top=10.0, bottom=110.0)
    assert (axes.x(0.0), axes.x(5.0), axes.x(10.0)) == (50, 200, 350)
    assert (axes.y(-1.0), axes.y(0.0), axes.y(1.0)) == (110, 60, 10)  # up is up


def test_ticks_are_round_and_within():
    assert ticks(0.0, 10.0, 5) == [0, 2, 4, 6, 8, 10]
    assert ticks(-180.0, 180.0, 5, (1.0, 1.5, 3.0, 4.5, 6.0, 9.0, 10.0)) == [-180, -90, 0, 90, 180]
    assert ticks(0.0, 2.0, 5, whole=True) == [0, 1, 2]
    assert all(-0.31 <= tick <= 0.17 for tick in ticks(-0.31, 0.17, 5))


def test_bars_of_a_reliability_diagram_are_as_high_as_the_accuracy():
    probabilities = np.array([[0.8, 0.2]] * 4)
    chart = parse(reliability_chart("before", score(np.array([0, 0, 0, 1]), probabilities)))
    (bar,) = [element for element in chart.iter("rect") if element.get("class") == "bar first"]
    assert float(bar.get("height")) == pytest.approx(0.75 * (206 - 10), abs=0.01)
    assert "right 75 %, 4 images" in bar.find("title").text


def test_cells_of_a_confusion_matrix_carry_their_counts():
    matrix = np.array([[30, 2, 0], [0, 31, 1], [4, 0, 32]])
    chart = parse(confusion_chart(matrix, ["a", "b", "c"]))
    cells = [element.text for element in chart.iter("text") if "cell" in element.get("class")]
    assert cells == ["30", "2", "31", "1", "4", "32"]
    assert "93 of 100" in chart.find("desc").text


HISTORY = [
    {"phase": "pre-train", "step": 0, "log_likelihood": -2.0, "ranges": {}},
    {"phase": "pre-train", "step": 10, "log_likelihood": -1.0, "ranges": {}},
    {"phase": "evidence", "round": 1, "step": 0, "elbo": -3.0, "ranges": {"rotation": [-0.1, 0.1]}},
    {"event": "warning", "message": "jitter"},
    {"event": "warning", "message": "jitter"},
    {"phase": "evidence", "round": 1, "step": 1, "elbo": -2.0, "ranges": {"rotation": [-0.5, 0.5]}},
    {"phase": "evidence", "round": 2, "step": 0, "elbo": -2.0, "ranges": {"rotation": [-0.5, 0.5]}},
    {"phase": "evidence", "round": 2, "step": 1, "elbo": -1.0, "ranges": {"rotation": [-1.0, 1.0]}},
    {"phase": "GP", "step": 0, "elbo": -1.0, "ranges": {"rotation": [-1.0, 1.0]}},
]


def test_a_path_joins_the_phases_in_which_ranges_moved():
    path = range_path(HISTORY, "rotation")
    assert path.steps == (0, 1, 2, 3)
    assert path.values == ([-0.1, 0.1], [-0.5, 0.5], [-0.5, 0.5], [-1.0, 1.0])
    assert path.starts == ((0, "round 1"), (2, "round 2"))
    everything = join(split_phases(HISTORY), lambda record: record.get("elbo"))
    assert everything.values == (-3.0, -2.0, -2.0, -1.0, -1.0) and everything.starts[-1] == (4, "GP")
    assert warnings_of(HISTORY) == ["jitter"]


def test_a_range_chart_describes_where_the_range_began_and_ended():
    chart = parse(range_chart(reading("rotation"), range_path(HISTORY, "rotation")))
    assert "from −6° … +6° to −57° … +57°" in chart.find("desc").text
    assert len(list(chart.iter("polyline"))) == 2


def test_charts_of_one_record_or_of_constant_values_can_be_drawn():
    parse(range_chart(reading("rotation"), Path((0.0,), ([0.0, 0.0],), ((0.0, "only"),))))
    parse(objective_chart("evidence", Path((0.0,), (-1.0,), ((0.0, "only"),))))
    parse(objective_chart("evidence", Path((0.0, 1.0, 2.0), (-1.0, -1.0, -1.0), ((0.0, "only"),))))


def test_a_running_mean_looks_back():
    assert smooth((1.0, 3.0, 5.0, 7.0), 2) == (1.0, 2.0, 4.0, 6.0)


def decode(uri):
    kind, data = uri.split(",", 1)
    return kind, Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (3, 200, 120), (1, 300, 300), (2, 8, 12)])
def test_pictures_are_sharp_small_and_of_the_right_shape(shape):
    image = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    kind, picture = decode(data_uri(image))
    assert 48 < max(picture.size) <= 96
    assert picture.width / picture.height == pytest.approx(shape[2] / shape[1], rel=0.05)
    assert ("jpeg" in kind) == (shape[0] == 3 and max(shape) > 64)
    _, strip = decode(strip_uri(np.stack([image] * 4)))
    assert strip.size == (4 * picture.width + 12, picture.height)


def test_small_pictures_keep_their_pixels():
    image = np.zeros((1, 4, 4), np.uint8)
    image[0, 1, 2] = 255
    _, picture = decode(data_uri(image))
    pixels = np.asarray(picture.convert("L"))
    factor = picture.width // 4
    assert (pixels.reshape(4, factor, 4, factor).std(axis=(1, 3)) == 0).all()
    assert (pixels[::factor, ::factor] == image[0]).all()


@pytest.mark.parametrize(
    ("labels", "places"),
    [
        ([0] * 4 + [1] * 4 + [2] * 4, [0, 4, 8]),  # a folder, class by class
        ([2, 2, 0, 2, 1, 0], [0, 2, 4]),
        ([1, 1, 1, 0], [0, 1, 3]),  # too few classes: another image of one of them
        ([5], [0]),
    ],
)
def test_the_picture_of_the_orbit_shows_different_classes(labels, places):
    assert one_per_class(torch.tensor(labels), 3).tolist() == places
