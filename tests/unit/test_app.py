"""The app's endpoints, through a real server on a free port."""

import http.client
import io
import json
import re
import socket
import stat
import threading
import zipfile
from types import SimpleNamespace

import pytest
import torch
from PIL import Image

from app_helpers import class_folders, image_file, save_run, serving, zip_file
from orbitune.app.api import Api, Endpoint
from orbitune.app.archives import unpack_images
from orbitune.app.explorer import NUM_DRAWS, NUM_STOPS, Explorer, sketch_style
from orbitune.app.fits import Fit, Fits, fit_options
from orbitune.app.images import png_uri, read_upload, read_uri
from orbitune.app.refusal import Refused
from orbitune.app.server import FILES, AppServer
from orbitune.errors import InputError
from orbitune.report.whatif import probabilities_with_band

RANGES = {"rotation": (-1.0, 1.0), "translate_x": (-0.2, 0.1)}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return save_run(tmp_path_factory.mktemp("app") / "run", RANGES)


@pytest.fixture(scope="module")
def client(run, tmp_path_factory):
    with serving(run, tmp_path_factory.mktemp("app") / "work") as client:
        yield client


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A server with no run."""
    with serving(None, tmp_path_factory.mktemp("app") / "work") as client:
        yield client


# --- exploring a run


def test_the_state_describes_the_run_and_its_sliders(client):
    status, state = client.get("/api/state")
    assert status == 200
    run = state["run"]
    assert [p["name"] for p in run["parameters"]] == list(RANGES)  # ranges of exactly zero have no slider
    assert len(run["examples"]) == 6 and run["shape"] == [1, 28, 28] and len(run["classes"]) == 10
    rotation = run["parameters"][0]
    assert len(rotation["values"]) == len(rotation["labels"]) == NUM_STOPS
    middle = NUM_STOPS // 2
    assert rotation["values"][middle] == 0 and rotation["labels"][middle] == "0°"
    for p in run["parameters"]:  # and it goes beyond the range
        assert p["values"][0] < p["low"] <= p["high"] < p["values"][-1]
    assert "digits" in state["datasets"]


def test_a_look_is_what_the_model_says(client, run):
    explorer = Explorer(run)
    example = client.get("/api/state")[1]["run"]["examples"][2]["image"]
    status, answer = client.post("/api/look", {"image": example, "params": {"rotation": 0.4}})
    assert status == 200
    image = read_uri(example, (1, 28, 28))
    params = torch.zeros(1, 1, 7)
    params[..., 0] = 0.4
    with torch.no_grad():
        moved = explorer.model.orbit.transform(image[None], params)[:, 0]
        mean, *_ = probabilities_with_band(explorer.model, moved, 32, torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.tensor(answer["mean"]).double(), mean[0], atol=1e-5, rtol=0)
    assert answer["image"] == png_uri(moved[0])
    assert sum(answer["mean"]) == pytest.approx(1)
    assert all(a <= b for a, b in zip(answer["low"], answer["high"], strict=True))
    assert answer["num_draws"] == NUM_DRAWS


def test_zero_is_the_image_itself_and_other_values_are_not(client):
    example = client.get("/api/state")[1]["run"]["examples"][0]["image"]
    still = client.post("/api/look", {"image": example, "params": {"rotation": 0.0}})[1]
    turned = client.post("/api/look", {"image": example, "params": {"rotation": 0.5}})[1]
    assert still["image"] == example and turned["image"] != example and turned["mean"] != still["mean"]


def test_the_seed_changes_the_draws_and_not_the_prediction(client):
    example = client.get("/api/state")[1]["run"]["examples"][0]["image"]
    first, same, other = (client.post("/api/look", {"image": example, "seed": s})[1] for s in (0, 0, 1))
    assert first == same and first["mean"] == other["mean"] and first["draws"] != other["draws"]


def test_a_model_without_an_orbit_predicts_and_has_no_sliders(tmp_path):
    with serving(save_run(tmp_path / "run", examples=False), tmp_path / "work") as client:
        described = client.get("/api/state")[1]["run"]
        assert described["parameters"] == [] and described["examples"] == [] and "no orbit" in described["headline"]
        image = client.send_file("/api/image", image_file())[1]["image"]
        answer = client.post("/api/look", {"image": image})[1]
        assert answer["image"] == image and answer["num_draws"] == 1
        assert (
            "unknown transformation"
            in client.post("/api/look", {"image": image, "params": {"rotation": 1}})[1]["error"]
        )


@pytest.mark.parametrize(("size", "kind"), [((28, 28), "PNG"), ((90, 60), "JPEG"), ((20, 400), "BMP")])
def test_an_uploaded_image_is_brought_to_the_shape_of_the_model(client, size, kind):
    status, answer = client.send_file("/api/image", image_file(size, kind))
    assert status == 200 and read_uri(answer["image"], (1, 28, 28)).shape == (1, 28, 28)


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_of_the_right_size_survives_the_way_there_and_back(channels):
    image = torch.randint(256, (channels, 9, 7), generator=torch.Generator().manual_seed(0)) / 255
    assert torch.equal(read_uri(png_uri(image), (channels, 9, 7)), image)


def test_an_image_that_claims_to_be_huge_is_refused(monkeypatch):
    monkeypatch.setattr("orbitune.app.images.MAX_PIXELS", 100)
    with pytest.raises(Refused, match="28 × 28 pixels"):
        read_upload(image_file(), (1, 28, 28))


def test_a_sketch_looks_like_the_examples():
    light = torch.zeros(1, 20, 20)
    light[:, 5:15, 8:12] = 1
    assert sketch_style([light]) == {"light": True, "extent": 0.5}
    assert sketch_style([1 - light]) == {"light": False, "extent": 0.5}
    assert sketch_style([]) == {"light": True, "extent": 1.0}


def test_another_run_can_be_opened_and_a_bad_one_leaves_the_old_in_place(run, tmp_path):
    save_run(tmp_path / "other", {"shear_x": (-0.3, 0.3)})
    (tmp_path / "begun").mkdir()
    with serving(run, tmp_path / "work") as client:
        for directory, says in (("nowhere", "no run directory"), ("begun", "no finished model"), ("", "directory")):
            wish = {"directory": str(tmp_path / directory) if directory else ""}
            status, answer = client.post("/api/run", wish)
            assert status == 400 and says in answer["error"]
        assert client.get("/api/state")[1]["run"]["name"] == "run"
        assert client.post("/api/run", {"directory": str(tmp_path / "other")})[1]["name"] == "other"
        assert [p["name"] for p in client.get("/api/state")[1]["run"]["parameters"]] == ["shear_x"]


# --- mistakes are sentences


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "expected an image"),
        ({"image": "data:image/png;base64,###"}, "base64"),
        ({"image": "data:image/png;base64,aGVsbG8="}, "not an image"),
        ({"image": png_uri(torch.zeros(1, 28, 28)), "params": {"colour": 1}}, "unknown transformation 'colour'"),
        ({"image": png_uri(torch.zeros(1, 28, 28)), "params": {"rotation": "far"}}, "expected a number"),
        ({"image": png_uri(torch.zeros(1, 28, 28)), "params": [1]}, "params must be"),
        ({"image": png_uri(torch.zeros(1, 28, 28)), "seed": -1}, "seed must be"),
    ],
)
def test_a_bad_look_is_a_sentence(client, values, says):
    status, answer = client.post("/api/look", values)
    assert status == 400 and says in answer["error"] and "Traceback" not in answer["error"]


def test_a_number_that_is_none_is_refused(client):
    body = json.dumps({"image": png_uri(torch.zeros(1, 28, 28)), "params": {"rotation": float("nan")}})
    status, answer = client.ask("POST", "/api/look", body, "application/json")
    assert status == 400 and "expected a number" in answer["error"]


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "status", "says"),
    [
        ("GET", "/nothing", None, None, 404, "nothing at /nothing"),
        ("GET", "/../../etc/passwd", None, None, 404, "nothing at"),
        ("POST", "/api/state", "{}", "application/json", 405, "does not take POST"),
        ("GET", "/api/look", None, None, 405, "does not take GET"),
        ("DELETE", "/api/run", None, None, 501, "DELETE"),
        ("POST", "/api/look", "{", "application/json", 400, "not valid JSON"),
        ("POST", "/api/look", "[]", "application/json", 400, "expected a JSON object"),
        ("POST", "/api/look", "{}", "text/plain", 415, "expected application/json"),
        ("POST", "/api/image", b"hello", "application/octet-stream", 400, "not an image"),
        ("POST", "/api/image", b"", "application/octet-stream", 400, "not an image"),
        ("POST", "/api/image", image_file()[:900], "application/octet-stream", 400, "cannot read this image"),
        ("POST", "/api/look", b" " * (8 * 2**20 + 1), "application/json", 413, "too large"),
        ("GET", "/api/fit?known=many", None, None, 200, None),
        ("POST", "/api/fit/stop", "{}", "application/json", 409, "no fit has been started"),
        ("POST", "/api/fit/resume", "{}", "application/json", 409, "no fit has been started"),
    ],
)
def test_every_mistake_is_a_sentence_with_a_status(client, method, path, body, kind, status, says):
    found, answer = client.ask(method, path, body, kind)
    assert found == status
    assert says is None or says in answer["error"]


def test_without_a_run_there_is_nothing_to_look_at(empty):
    assert empty.get("/api/state")[1]["run"] is None
    for status, answer in (empty.post("/api/look", {}), empty.send_file("/api/image", image_file())):
        assert status == 409 and "no run is open" in answer["error"]


def test_a_mistake_of_ours_is_a_sentence_too(client, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(Explorer, "look", fail)
    status, answer = client.post("/api/look", {"image": png_uri(torch.zeros(1, 28, 28))})
    assert status == 500 and "ZeroDivisionError" in answer["error"] and "secret" not in answer["error"]
    assert "secret detail" in caplog.text  # for the terminal


def test_a_body_without_a_length_is_refused(client):
    head = f"POST /api/look HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Orbitune-Token: {client.server.token}\r\n"
    with socket.create_connection(("127.0.0.1", client.server.server_port), timeout=30) as connection:
        connection.sendall((head + "Content-Type: application/json\r\n\r\n").encode())
        assert b" 411 " in connection.recv(100)


# --- who may ask


def test_the_page_and_its_files_are_served_with_a_strict_policy(client):
    status, page, headers = client.raw("GET", client.url.partition(str(client.server.server_port))[2])
    assert status == 200 and b"<h1" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"] and headers["Cache-Control"] == "no-store"
    for name in re.findall(r'(?:src|href)="(?!data:)([^"]+)"', page.decode()):
        assert f"/{name}" in FILES
    for path in FILES.keys() - {"/"}:
        assert client.raw("GET", path)[0] == 200
        for name in re.findall(r'from "\./([^"]+)"', FILES[path][0].read_text()):
            assert f"/{name}" in FILES


@pytest.mark.parametrize("token", [None, "", "wrong", "ü"])
def test_without_the_token_nothing_is_told(client, token):
    encoded = token.encode("latin-1") if token else token
    assert client.ask("GET", "/api/state", headers={"X-Orbitune-Token": encoded})[0] == 403
    assert client.ask("POST", "/api/run", "{}", "application/json", {"X-Orbitune-Token": encoded})[0] == 403
    status, answer, _ = client.raw("GET", "/")
    assert status == 403 and "open the address" in json.loads(answer)["error"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "[", ""])
def test_a_rebound_name_is_refused(client, host):
    status, answer = client.ask("GET", "/api/state", headers={"Host": host})
    assert status == 403 and "not called" in answer["error"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_another_web_page_is_refused(client, origin):
    status, answer = client.post("/api/look", {}, {"Origin": origin})
    assert status == 403 and origin in answer["error"]


def test_our_own_page_is_not_refused(client):
    for name in ("127.0.0.1", "localhost"):
        host = f"{name}:{client.server.server_port}"
        assert client.ask("GET", "/api/state", headers={"Host": host, "Origin": f"http://{host}"})[0] == 200


def test_a_port_that_is_taken_is_a_sentence(client, tmp_path):
    with pytest.raises(InputError, match="Choose another port"):
        AppServer(Api(None, tmp_path), port=client.server.server_port)


def test_a_connection_serves_many_requests_and_the_server_many_connections(client):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(client.get("/api/fit"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [(200, {"status": None})] * 8


def test_what_an_endpoint_does_not_read_does_not_spoil_the_next_request(client):
    connection = http.client.HTTPConnection("127.0.0.1", client.server.server_port, timeout=60)
    headers = {"X-Orbitune-Token": client.server.token, "Content-Type": "application/json"}
    client.server.api.endpoints["POST", "/api/nothing"] = Endpoint(lambda request: {}, "application/json", 100)
    try:
        for _ in range(2):
            connection.request("POST", "/api/nothing", "{}", headers)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            response.read()
    finally:
        connection.close()
        del client.server.api.endpoints["POST", "/api/nothing"]


def test_a_question_about_another_run_is_refused(client, run):
    example = client.get("/api/state")[1]["run"]["examples"][0]["image"]
    assert client.post("/api/look", {"image": example, "run": str(run)})[0] == 200
    status, answer = client.post("/api/look", {"image": example, "run": "other"})
    assert status == 409 and "another run was opened" in answer["error"]


def test_an_upload_is_squeezed_where_training_images_were(run):
    pixels = Image.new("L", (40, 20), 0)
    pixels.paste(255, (0, 0, 10, 20))  # the left quarter is white
    file = io.BytesIO()
    pixels.save(file, "PNG")
    squeezed, cut = (read_upload(file.getvalue(), (1, 20, 20), squeeze=s) for s in (True, False))
    assert squeezed[0, 10, 0] == 1 and cut[0, 10, 0] == 0


# --- zips


def test_a_zip_of_class_folders_becomes_data(empty):
    for top in ("", "photos/", "my/photos/"):
        members = class_folders(top=top) | {f"{top}notes.txt": b"hello", "__MACOSX/cats/0.png": b"no image"}
        status, answer = empty.send_file("/api/upload?name=photos.zip", zip_file(members))
        assert status == 200, answer
        assert answer["about"] == "12 colour images of 12 × 12 pixels in 2 classes: cats, dogs."


def test_images_of_different_sizes_are_brought_to_one(empty):
    members = class_folders() | {"cats/large.png": image_file((40, 30))}
    status, answer = empty.send_file("/api/upload?name=photos.zip", zip_file(members))
    assert status == 400 and "2 different sizes" in answer["error"]
    status, answer = empty.send_file("/api/upload?name=photos.zip&side=16", zip_file(members))
    assert status == 200 and "13 colour images of 16 × 16 pixels in 2 classes: cats, dogs" in answer["about"]
    assert "different sizes" in empty.post("/api/fit", {"data": answer["data"]})[1]["error"]
    status, answer = empty.send_file("/api/upload?name=photos.zip&side=3", zip_file(members))
    assert status == 400 and "side of 4 to 512" in answer["error"]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"hello", "not a zip file"),
        (b"", "not a zip file"),
        (zip_file(class_folders())[:-200], "not a zip file"),
        (zip_file({}), "no images in this zip"),
        (zip_file({"readme.txt": b"hello"}), "no images in this zip"),
        (zip_file({"cats/0.png": image_file()}), "only cats/"),
        (zip_file({"cats/0.png": image_file(), "dogs/0.png": b"no image"}), "cannot read the image"),
        (zip_file({"../cats/0.png": image_file(), "dogs/0.png": image_file()}), "leads out of its folder"),
        (zip_file({"/cats/0.png": image_file(), "dogs/0.png": image_file()}), "leads out of its folder"),
        (zip_file({"cats/../../0.png": image_file()}), "leads out of its folder"),
        (zip_file({"C:\\cats\\0.png": image_file()}), "leads out of its folder"),
    ],
)
def test_a_bad_zip_is_a_sentence_and_leaves_nothing_behind(empty, content, says):
    uploads = empty.server.api.work / "uploads"
    before = sorted(uploads.rglob("*")) if uploads.exists() else []
    status, answer = empty.send_file("/api/upload?name=bad.zip", content)
    assert status == 400 and says in answer["error"]
    assert (sorted(uploads.rglob("*")) if uploads.exists() else []) == before


def test_links_in_a_zip_are_refused(tmp_path):
    link = zipfile.ZipInfo("cats/0.png")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(Refused, match="link"):
        unpack_images(tmp_path / "a.zip", tmp_path / "out")


def test_a_zip_that_unpacks_to_too_much_is_refused_whatever_it_claims(tmp_path):
    (tmp_path / "a.zip").write_bytes(zip_file({f"cats/{i}.png": b"\0" * 10_000_000 for i in range(3)}))
    assert (tmp_path / "a.zip").stat().st_size < 100_000
    for limits, says in (((25_000_000, 10), "more than"), ((10**9, 2), "3 images")):
        with pytest.raises(Refused, match=says) as refusal:
            unpack_images(tmp_path / "a.zip", tmp_path / "out", *limits)
        assert refusal.value.status == 413 and not (tmp_path / "out").exists()


def test_a_name_from_outside_never_leads_out_of_the_work_directory(empty):
    content = zip_file(class_folders())
    for name in ("..%2F..%2Fevil.zip", "%2Fetc.zip", "a%00b.zip", "x" * 500 + ".zip"):
        status, answer = empty.send_file(f"/api/upload?name={name}", content)
        assert status == 200 and answer["data"].startswith(str(empty.server.api.work / "uploads"))


# --- fits that must not start


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "choose what to learn from"),
        ({"data": "no-such-set"}, "no-such-set"),
        ({"data": "/no/such/folder"}, "no file or folder"),
        ({"data": "--help"}, "--help"),
        ({"data": "digits", "budget": "all night"}, "unknown budget"),
        ({"data": "digits", "train_size": 1}, "whole number"),
        ({"data": "digits", "train_size": "1; rm"}, "whole number"),
        ({"data": "digits", "orbit": []}, "at least one transformation"),
        ({"data": "digits", "orbit": ["--resume"]}, "at least one transformation"),
    ],
)
def test_a_fit_of_nothing_sensible_does_not_start(empty, values, says):
    status, answer = empty.post("/api/fit", values)
    assert status == 400 and says in answer["error"]
    assert empty.get("/api/fit")[1] == {"status": None}


def test_an_empty_folder_and_one_class_are_sentences(empty, tmp_path):
    assert "no sub-folder" in empty.post("/api/fit", {"data": str(tmp_path)})[1]["error"]
    (tmp_path / "cats").mkdir()
    assert "only cats/" in empty.post("/api/fit", {"data": str(tmp_path)})[1]["error"]


def test_options_of_a_fit_are_those_of_the_command_line():
    values = {"budget": "smoke", "train_size": 100, "orbit": ["rotation", "shear_x"]}
    assert fit_options(values) == ["--budget", "smoke", "--train-size", "100", "--orbit", "rotation,shear_x"]
    assert fit_options({"resize": 64}) == ["--budget", "laptop", "--resize", "64"]


def test_after_the_end_no_fit_starts(tmp_path):
    fits = Fits(tmp_path)
    fits.close()
    with pytest.raises(Refused, match="ending"):
        fits.start("digits", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("round 1\nError: the images are too small\n", "the images are too small"),
        ("Error: too small", "too small"),
        ("Traceback (most recent call last):\n  File\nKeyError: 'a'\n", "the fit ended unexpectedly"),
        ("", "the fit ended unexpectedly"),
    ],
)
def test_a_failed_fit_is_explained_by_its_sentence_and_never_by_half_a_traceback(said, expected, tmp_path, monkeypatch):
    process = SimpleNamespace(poll=lambda: 1)
    monkeypatch.setattr(Fit, "_launch", lambda self, arguments: process)
    fit = Fit("digits", tmp_path, [])
    (tmp_path / "fit.log").write_text(said)
    assert fit.describe()["message"].startswith(expected)
