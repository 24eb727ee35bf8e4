"""A small run on disk, a server on a free port, and questions to it."""

import http.client
import io
import json
import zipfile
from contextlib import contextmanager
from threading import Thread

import numpy as np
import torch
from PIL import Image

from orbitune.app.api import Api
from orbitune.app.server import TOKEN_HEADER, AppServer
from orbitune.backbones import MnistCNN
from orbitune.config import FitConfig, to_toml
from orbitune.data import load_dataset
from orbitune.likelihoods import Softmax
from orbitune.model import build_model
from orbitune.objectives import natural_gradient_step, sample_elbo
from orbitune.orbits import AffineOrbit, IdentityOrbit
from orbitune.report.predictions import collect_predictions, write_predictions
from orbitune.saving import save_model
from orbitune.training.evaluation import class_probabilities


def save_run(directory, ranges=None, *, examples=True):
    """A model that has seen a few digits, as a fit leaves it; no ranges are no orbit."""
    generator = torch.Generator().manual_seed(0)
    digits = load_dataset("digits").subset(60, generator=generator)
    images, labels = digits.images("train"), digits.labels("train")
    torch_state = torch.random.get_rng_state()  # the weights of a fresh network come from the global generator
    torch.manual_seed(0)
    backbone = MnistCNN(digits.image_shape)
    torch.random.set_rng_state(torch_state)
    orbit = AffineOrbit(ranges, learn=list(ranges)) if ranges else IdentityOrbit()
    model = build_model(orbit, backbone, Softmax(10), images, num_inducing=30, generator=generator)
    for _ in range(20):
        terms = sample_elbo(model, images, labels, num_data=60, orbit_size=2, generator=generator)
        natural_gradient_step(model, terms, rate=0.3, generator=generator)
    directory.mkdir(parents=True)
    save_model(
        directory,
        model,
        image_shape=digits.image_shape,
        class_names=digits.class_names,
        likelihood="softmax",
        backbone="mnist-cnn",
    )
    (directory / "config.toml").write_text(to_toml(FitConfig(data="digits")))
    if examples:
        probabilities = class_probabilities(model, digits.images("test"), 1, generator)
        write_predictions(directory, collect_predictions(digits, probabilities, probabilities, None))
    return directory


@contextmanager
def serving(run, work):
    server = AppServer(Api(run, work))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Client(server)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        server.api.fits.close()


class Client:
    """Asks as the page does; ``headers`` are added, and one that is None is left out."""

    def __init__(self, server):
        self.server, self.url = server, server.url

    def ask(self, method, path, body=None, kind=None, headers=None):
        """Status and JSON."""
        sent = {TOKEN_HEADER: self.server.token, "Content-Type": kind, **(headers or {})}
        status, content, _ = self.raw(method, path, body, {k: v for k, v in sent.items() if v is not None})
        return status, json.loads(content)

    def raw(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, values=None, headers=None):
        return self.ask("POST", path, json.dumps(values or {}), "application/json", headers)

    def send_file(self, path, content):
        return self.ask("POST", path, content, "application/octet-stream")


def image_file(size=(28, 28), kind="PNG", seed=0):
    file = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(256, size=(size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def zip_file(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def class_folders(num=6, size=(12, 12), top=""):
    """Members of a zip: two classes of images."""
    return {f"{top}{c}/{i}.png": image_file(size, seed=i) for c in ("cats", "dogs") for i in range(num)}
