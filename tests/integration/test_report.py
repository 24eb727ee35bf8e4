"""The report of a run: what it says, what it escapes, and how it looks in a browser."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from integration_helpers import orbitune

pytestmark = pytest.mark.slow  # starts the program, and a browser, many times

NASTY = "<img src=x onerror=alert(1)> & co"
SECTIONS = ["ranges", "orbits", "what-if", "scores", "evidence", "run"]


def fit(directory, data, *options):
    finished = orbitune("fit", str(data), *options, "--budget", "smoke", "--quiet", "--out", str(directory))
    assert finished.returncode == 0, finished.stderr
    return directory


def report(run, *options):
    """What the command prints, and the page it writes."""
    finished = orbitune("report", str(run), *options, "--json")
    assert finished.returncode == 0, finished.stderr
    printed = json.loads(finished.stdout)
    return printed, Page(Path(printed["report"]))


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    return fit(tmp_path_factory.mktemp("report") / "digits", "digits", "--train-size", "100")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Colour images in folders with names that nobody should have to escape by hand; no test set."""
    root = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    for shade, name in enumerate((NASTY, "plain name")):
        (root / name).mkdir()
        for index in range(12):
            pixels = rng.integers(120, size=(28, 28, 3), dtype=np.uint8) + 120 * shade
            Image.fromarray(pixels.astype(np.uint8)).save(root / name / f"{index}.png")
    return root


@pytest.fixture(scope="module")
def photos_run(photos, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "fit.toml").write_text('learner = "fixed"\n[orbit]\nlearn = []\nranges = {rotation = [-0.5, 0.5]}\n')
    return fit(folder / "photos", photos, "--config", str(folder / "fit.toml"))


class Page(HTMLParser):
    """Elements with their attributes, and all text."""

    def __init__(self, path):
        super().__init__()
        self.path, self.elements, self.text = path, [], ""
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def digits_report(digits_run):
    return report(digits_run)


@pytest.fixture(scope="module")
def photos_report(photos_run, photos, tmp_path_factory):
    """Scored on the images it learned from, since there are no others."""
    return report(photos_run, str(photos), "--out", str(tmp_path_factory.mktemp("out") / "deep" / "report.html"))


def test_the_numbers_are_those_of_the_run(digits_run, digits_report):
    printed, page = digits_report
    assert printed["report"] == str(digits_run / "report.html")
    result = json.loads((digits_run / "result.json").read_text())
    assert printed["scores"]["orbit average"]["accuracy"] == pytest.approx(result["test_accuracy"])
    assert printed["scores"]["plain network"]["accuracy"] == pytest.approx(result["plain_network_accuracy"])
    assert f"{100 * result['test_accuracy']:.1f}" in page.text
    assert [attrs["id"] for tag, attrs in page.elements if tag == "section"] == SECTIONS
    assert len([1 for tag, _ in page.elements if tag == "svg"]) == 7 + 7 + 3 + 3  # ranges, sweeps, scores, objectives


def test_the_page_is_small_and_asks_for_nothing_else(digits_report):
    page = digits_report[1]
    source = page.path.read_text()
    assert len(source) < 1_000_000
    for _, attrs in page.elements:
        for name in ("src", "href"):
            assert attrs.get(name, "data:").startswith("data:")
    assert "url(" not in source and "@import" not in source
    assert not [tag for tag, _ in page.elements if tag == "script"]
    assert all(attrs.get("alt") for tag, attrs in page.elements if tag == "img")


def test_names_are_shown_as_they_are_and_never_as_markup(photos_report):
    page = photos_report[1]
    assert NASTY in page.text
    assert not [attrs for _, attrs in page.elements if "onerror" in attrs]


def test_without_a_test_set_the_page_says_so_and_named_data_fill_the_gap(photos_run, photos_report):
    printed, page = report(photos_run)
    assert printed["scores"] == {} and "There was no test set" in page.text
    assert "Given, not learned: rotations up to ±29°" in printed["verdict"]
    printed, page = photos_report
    assert set(printed["scores"]) == {"one look", "orbit average"}
    assert "There was no test set" not in page.text and "which has no test part" in page.text


def test_a_run_that_kept_no_predictions_still_has_a_report(digits_run, tmp_path):
    shutil.copytree(digits_run, tmp_path / "old")
    (tmp_path / "old" / "predictions.npz").unlink()
    assert "left no predictions" in report(tmp_path / "old")[1].text
    assert report(tmp_path / "old", "digits")[0]["scores"]["orbit average"]["accuracy"] > 0


@pytest.mark.parametrize(
    ("learner", "likelihood", "says"),
    [
        ("plain", "softmax", "This model has no orbit"),
        ("max-likelihood", "softmax", "a network without a Gaussian process has no band"),
        ("coordinate", "gaussian", "90 % of what the Gaussian process deems possible"),
    ],
)
def test_every_kind_of_run_has_a_report(learner, likelihood, says, tmp_path):
    options = ("--learner", learner, "--likelihood", likelihood, "--train-size", "60")
    printed, page = report(fit(tmp_path / "run", "digits", *options))
    assert says in " ".join(page.text.split())
    assert ("plain network" in printed["scores"]) == (learner != "plain")  # which is one itself
    assert all(0 < scores["log_loss"] < 20 for scores in printed["scores"].values())  # these are probabilities


def test_mistakes_are_sentences(digits_run, photos, tmp_path):
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "config.toml").write_text("")
    for arguments, message in (
        ([str(tmp_path / "nowhere")], "there is no run directory"),
        ([str(tmp_path)], "it is not the directory of a run"),
        ([str(tmp_path / "begun")], "the run is unfinished: continue it with"),
        ([str(digits_run), "no-such-set"], "no-such-set"),
        ([str(digits_run), str(photos)], "images of shape"),
    ):
        finished = orbitune("report", *arguments)
        assert finished.returncode == 2 and "Traceback" not in finished.stderr
        assert message in " ".join(finished.stderr.split())


def test_help_teaches_with_an_example():
    finished = orbitune("report", "--help")
    assert finished.returncode == 0 and "orbitune report run" in finished.stdout


def emulate(browser, width, scheme):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (360, "dark")])
@pytest.mark.parametrize("which", ["digits", "photos"])
def test_in_a_browser_nothing_is_missing_and_nothing_sticks_out(which, width, scheme, browser, request):
    page = request.getfixturevalue(f"{which}_report")[1]
    emulate(browser, width, scheme)
    browser.get(page.path.as_uri())
    assert browser.get_log("browser") == []  # no errors, no alert of a nasty name
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    broken = browser.execute_async_script(
        """
        const done = arguments[arguments.length - 1];
        const uris = [...document.images].map(i => i.src).concat(
            [...document.querySelectorAll("svg image")].map(i => i.getAttribute("href")));
        Promise.all(uris.map(uri => new Promise(ok => {
            const image = new Image();
            image.onload = () => ok(image.naturalWidth > 0);
            image.onerror = () => ok(false);
            image.src = uri;
        }))).then(found => done([found.length, found.filter(ok => !ok).length]));
        """
    )
    assert broken[0] > 20 and broken[1] == 0
    requests = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in requests if not name.startswith("data:")] == []
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    shades = [int(shade) for shade in re.findall(r"\d+", background)]
    assert (sum(shades) > 600) == (scheme == "light")
