"""The app as a program: fits that are started, stopped and resumed; the page in a browser; how it ends."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from app_helpers import Client, class_folders, save_run, serving, zip_file
from integration_helpers import orbitune

pytestmark = pytest.mark.slow  # starts the program, fits, and a browser


def wait_for(condition, seconds=600):
    """The first true value of a condition."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.2)
    raise AssertionError("it took too long")


def ended(client):
    fit = client.get("/api/fit")[1]
    return fit if fit["status"] not in ("running", "stopping") else None


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    ranges = {"rotation": (-1.0, 1.0), "translate_x": (-0.2, 0.1)}
    return save_run(tmp_path_factory.mktemp("app") / "<b>run", ranges)


def test_an_uploaded_zip_is_learned_and_can_be_tried(tmp_path):
    with serving(None, tmp_path / "work") as client:
        data = client.send_file("/api/upload?name=pets.zip", zip_file(class_folders(num=10)))[1]["data"]
        wish = {"data": data, "budget": "smoke", "orbit": ["rotation", "translate_x"]}
        status, fit = client.post("/api/fit", wish)
        assert status == 200 and fit["status"] == "running" and fit["name"] == "pets-1"
        status, answer = client.post("/api/fit", wish)
        assert status == 409 and "a fit is running" in answer["error"]
        fit = wait_for(lambda: ended(client))
        assert fit["status"] == "finished", fit["message"]
        assert [card["title"] for card in fit["ranges"]] == ["rotation", "sideways shift"]
        assert all(card["chart"].startswith("<svg") for card in fit["ranges"])
        assert client.get(f"/api/fit?known={fit['num_measured']}")[1]["ranges"] is None
        assert client.post("/api/fit/stop")[0] == 409 and client.post("/api/fit/resume")[0] == 409
        opened = client.post("/api/run", {"directory": fit["directory"]})[1]
        assert opened["classes"] == ["cats", "dogs"] and opened["shape"] == [3, 12, 12]
        answer = client.post("/api/look", {"image": opened["examples"][0]["image"], "params": {"rotation": 0.1}})[1]
        assert sum(answer["mean"]) == pytest.approx(1)


def test_a_fit_is_stopped_saved_and_resumed(tmp_path):
    with serving(None, tmp_path / "work") as client:
        client.post("/api/fit", {"data": "digits", "budget": "laptop", "train_size": 200, "orbit": ["rotation"]})
        wait_for(lambda: client.get("/api/fit")[1]["seconds"] > 0)  # it has begun to measure
        assert client.post("/api/fit/stop")[1]["status"] == "stopping"
        assert client.post("/api/fit/stop")[0] == 200  # asking again does not kill it
        fit = wait_for(lambda: ended(client))
        assert fit["status"] == "stopped"
        directory = client.server.api.fits.current.directory
        assert (directory / "checkpoint.safetensors").exists()
        assert client.post("/api/fit/resume")[1]["status"] == "running"
        wait_for(lambda: client.get("/api/fit")[1]["seconds"] > fit["seconds"])
    process = client.server.api.fits.current  # closing the server stops and saves it
    assert not process.active and process.status == "stopped"


def test_a_fit_that_fails_says_why(tmp_path):
    with serving(None, tmp_path / "work") as client:
        data = client.send_file("/api/upload?name=tiny.zip", zip_file(class_folders(size=(3, 3))))[1]["data"]
        client.post("/api/fit", {"data": data, "budget": "smoke"})
        fit = wait_for(lambda: ended(client))
        assert fit["status"] == "failed" and "Traceback" not in fit["message"]
        assert "(3, 3, 3)" in fit["message"]  # the network needs sides of four


def test_ctrl_c_ends_it_cleanly_and_a_taken_port_is_a_sentence(run, tmp_path):
    command = [sys.executable, "-m", "orbitune", "app", str(run), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        try:
            line = process.stdout.readline()
            port = re.fullmatch(r"Orbitune is at http://127\.0\.0\.1:(\d+)/\?token=\S+\n", line)[1]
            second = orbitune("app", "--port", port, "--no-browser")
            assert second.returncode == 2 and "Choose another port" in " ".join(second.stderr.split())
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 0 and "Traceback" not in errors and "Ended." in errors
        finally:
            process.kill()
    assert list(tmp_path.iterdir()) == []  # nothing was asked for, nothing was written


def test_a_run_that_is_not_there_is_a_sentence(tmp_path):
    finished = orbitune("app", str(tmp_path / "nowhere"), "--port", "0", "--no-browser")
    assert finished.returncode == 2 and "there is no run directory" in " ".join(finished.stderr.split())


def text(browser, id):
    return browser.execute_script("return document.getElementById(arguments[0]).textContent", id)


@pytest.mark.parametrize("width", [1200, 360])
def test_in_a_browser_a_slider_moves_the_image_and_the_prediction(browser, run, tmp_path, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    with serving(run, tmp_path / "work") as client:
        browser.get(client.url)
        wait_for(lambda: browser.execute_script("return document.querySelectorAll('#bars .track').length") == 10)
        picture = "return document.getElementById('moved').src"
        before = browser.execute_script(picture), text(browser, "bars")
        browser.execute_script(
            "const s = document.getElementById('slider-rotation'); s.value = 190; s.dispatchEvent(new Event('input'))"
        )
        wait_for(lambda: browser.execute_script(picture) != before[0] and text(browser, "bars") != before[1])
        beyond = "return document.getElementById('slider-rotation').closest('.slider').classList.contains('beyond')"
        assert browser.execute_script(beyond)  # 162° where 57° were learned
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert text(browser, "run-name") == "<b>run"  # a name is never markup
        assert browser.get_log("browser") == []


def test_in_a_browser_a_sketch_is_predicted_and_a_mistake_is_shown(browser, run, tmp_path):
    from selenium.webdriver import ActionChains

    with serving(run, tmp_path / "work") as client:
        browser.get(client.url)
        wait_for(lambda: browser.execute_script("return document.querySelectorAll('#bars .track').length") == 10)
        before = browser.execute_script("return document.getElementById('moved').src")
        browser.execute_script("document.querySelector('[data-panel=sketch]').click()")
        canvas = browser.find_element("id", "canvas")
        ActionChains(browser).drag_and_drop_by_offset(canvas, 30, 60).perform()
        wait_for(lambda: browser.execute_script("return document.getElementById('moved').src") != before)
        assert browser.get_log("browser") == []
        browser.execute_script(
            "document.getElementById('directory').value = '/no/such/run';"
            "document.querySelector('#open-form button').click()"
        )
        wait_for(lambda: "There is no run directory" in text(browser, "open-error"))


def test_in_a_browser_a_fit_that_fails_says_why_and_keeps_saying_it(browser, tmp_path):
    with serving(None, tmp_path / "work") as client:
        data = client.send_file("/api/upload?name=tiny.zip", zip_file(class_folders(size=(3, 3))))[1]["data"]
        browser.get(client.url)
        wait_for(lambda: browser.execute_script("return document.querySelectorAll('#data option').length") > 2)
        browser.execute_script(
            "const data = document.getElementById('data'); data.value = data.options[data.options.length - 1].value;"
            "data.dispatchEvent(new Event('change')); document.getElementById('path').value = arguments[0];"
            "document.getElementById('budget').value = 'smoke'; document.getElementById('start').click()",
            data,
        )
        wait_for(lambda: "It failed: " in text(browser, "fit-message"))
        time.sleep(1)
        assert "(3, 3, 3)" in text(browser, "fit-message")
        assert browser.find_element("id", "fit-message").is_displayed()
        assert not browser.execute_script("return document.getElementById('side').closest('label').hidden")


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM"])
def test_when_the_terminal_goes_the_fit_is_saved(name, tmp_path):
    command = [sys.executable, "-m", "orbitune", "app", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=tmp_path) as app:
        try:
            port, token = re.search(r":(\d+)/\?token=(\S+)", app.stdout.readline()).groups()
            client = Client(SimpleNamespace(url="", server_port=int(port), token=token))
            client.post("/api/fit", {"data": "digits", "train_size": 200, "orbit": ["rotation"]})
            wait_for(lambda: client.get("/api/fit")[1]["seconds"] > 0)
            directory = Path(client.get("/api/fit")[1]["directory"])
            app.send_signal(getattr(signal, name))
            assert app.wait(timeout=120) == 0
        finally:
            app.kill()
    assert (directory / "checkpoint.safetensors").exists()
