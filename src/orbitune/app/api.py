"""What the page can ask for: every endpoint, with the size and type of what it takes."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from orbitune.app.archives import MAX_ARCHIVE_BYTES
from orbitune.app.explorer import Explorer
from orbitune.app.fits import BUDGETS, Fits
from orbitune.app.images import png_uri, read_upload, read_uri
from orbitune.app.refusal import Refused
from orbitune.app.uploads import check_source, checked_side, receive_zip
from orbitune.data import dataset_table
from orbitune.orbits import AffineOrbit
from orbitune.report.words import reading

JSON, BYTES = "application/json", "application/octet-stream"
MAX_JSON_BYTES, MAX_IMAGE_BYTES = 8 * 2**20, 30 * 2**20


@dataclass(frozen=True)
class Request:
    """What came with a request: the parameters of its address, and its body."""

    query: dict[str, str]
    body: io.RawIOBase | io.BytesIO

    def json(self) -> dict[str, Any]:
        """The body as a JSON object."""
        try:
            values = json.loads(self.body.read() or b"{}")
        except (ValueError, RecursionError) as error:
            raise Refused(f"the request is not valid JSON: {error}") from error
        if not isinstance(values, dict):
            raise Refused(f"expected a JSON object, got {type(values).__name__}")
        return values

    def number(self, name: str, default: int | None = None) -> int | None:
        """A whole number from the address."""
        text = self.query.get(name, "")
        if not text:
            return default
        try:
            return int(text)
        except ValueError as error:
            raise Refused(f"expected a whole number for {name}, got {text!r}") from error


@dataclass(frozen=True)
class Endpoint:
    """A function of the API, and what it accepts: no body, JSON, or the bytes of a file."""

    answer: Callable[[Request], dict[str, Any]]
    content_type: str | None = None
    max_bytes: int = 0


class Api:
    """The run that is open and the fit that is running.

    Args:
        run: directory of a finished run to begin with.
        work: where uploads and new runs go; made when it is needed.
    """

    def __init__(self, run: Path | None, work: Path):
        self.work = work
        self.explorer = None if run is None else Explorer(run)
        self.fits = Fits(work)
        self.endpoints = {
            ("GET", "/api/state"): Endpoint(self.state),
            ("GET", "/api/fit"): Endpoint(self.fit),
            ("POST", "/api/run"): Endpoint(self.open_run, JSON, MAX_JSON_BYTES),
            ("POST", "/api/image"): Endpoint(self.read_image, BYTES, MAX_IMAGE_BYTES),
            ("POST", "/api/look"): Endpoint(self.look, JSON, MAX_JSON_BYTES),
            ("POST", "/api/upload"): Endpoint(self.upload, BYTES, MAX_ARCHIVE_BYTES),
            ("POST", "/api/fit"): Endpoint(self.start_fit, JSON, MAX_JSON_BYTES),
            ("POST", "/api/fit/stop"): Endpoint(self.stop_fit, JSON, MAX_JSON_BYTES),
            ("POST", "/api/fit/resume"): Endpoint(self.resume_fit, JSON, MAX_JSON_BYTES),
        }

    def state(self, request: Request) -> dict[str, Any]:
        """Everything the page needs to begin."""
        return {
            "run": None if self.explorer is None else self.explorer.describe(),
            "datasets": [row.name for row in dataset_table() if row.present],
            "transformations": [{"name": name, "title": reading(name).title} for name in AffineOrbit.names],
            "budgets": BUDGETS,
            "work": str(self.work.resolve()),
            "limits": {"image": MAX_IMAGE_BYTES, "zip": MAX_ARCHIVE_BYTES},
        }

    def open_run(self, request: Request) -> dict[str, Any]:
        """Open another finished run."""
        directory = request.json().get("directory")
        if not isinstance(directory, str) or not directory.strip():
            raise Refused("give the directory of a finished run")
        self.explorer = Explorer(Path(directory.strip()).expanduser())
        return self.explorer.describe()

    def read_image(self, request: Request) -> dict[str, Any]:
        """An image file, at the size of the model."""
        explorer = self._explorer()
        return {"image": png_uri(read_upload(request.body.read(), explorer.shape, squeeze=explorer.squeezes))}

    def look(self, request: Request) -> dict[str, Any]:
        """What the model makes of an image under a transformation."""
        explorer, values = self._explorer(), request.json()
        if values.get("run", str(explorer.directory)) != str(explorer.directory):
            raise Refused(
                f"another run was opened meanwhile, {explorer.directory}: reload the page", HTTPStatus.CONFLICT
            )
        params, seed = _numbers(values.get("params", {})), values.get("seed", 0)
        if not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise Refused(f"seed must be a whole number from 0 on, got {seed!r}")
        return explorer.look(read_uri(values.get("image"), explorer.shape), params, seed)

    def upload(self, request: Request) -> dict[str, Any]:
        """A zip with one folder of images per class."""
        side = checked_side(request.number("side"))
        return receive_zip(request.body, request.query.get("name", "upload.zip"), side, self.work)

    def start_fit(self, request: Request) -> dict[str, Any]:
        """Start a fit."""
        values = request.json()
        self.fits.start(check_source(values.get("data"), checked_side(values.get("resize"))), values)
        return self.fit(Request({}, io.BytesIO()))

    def stop_fit(self, request: Request) -> dict[str, Any]:
        """Ask the fit to save and end."""
        self.fits.stop()
        return self.fit(request)

    def resume_fit(self, request: Request) -> dict[str, Any]:
        """Continue the stopped fit."""
        self.fits.resume()
        return self.fit(request)

    def fit(self, request: Request) -> dict[str, Any]:
        """How the fit is doing; ``known`` in the address is what the page has already drawn."""
        if self.fits.current is None:
            return {"status": None}
        known = request.number("known", -1)
        return self.fits.current.describe(-1 if known is None else known)

    def _explorer(self) -> Explorer:
        if self.explorer is None:
            raise Refused("no run is open: give its directory, or fit one first", HTTPStatus.CONFLICT)
        return self.explorer


def _numbers(params: object) -> dict[str, float]:
    if not isinstance(params, dict):
        raise Refused(f"params must be an object of numbers by name, got {params!r}")
    for name, value in params.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 1000:
            raise Refused(f"expected a number from -1000 to 1000 for {name}, got {value!r}")
    return {str(name): float(value) for name, value in params.items()}
