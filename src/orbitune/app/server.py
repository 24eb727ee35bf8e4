"""The web server: who may ask, how much they may send, and answers that are JSON or a file of the page.

Convention:
    The server is for one person. Their browser knows a token, which is part of the address that is printed; pages need
    it in the address, endpoints in the header ``X-Orbitune-Token``. A foreign web page cannot know it, nor can another
    user of the machine. Besides, ``Host`` must be an address or a name we were started with, which defeats DNS
    rebinding (an address cannot be rebound), and ``Origin``, where a browser sends one, must be ourselves.
"""

import io
import ipaddress
import json
import logging
import secrets
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from orbitune.app.api import Api, Endpoint, Request
from orbitune.app.refusal import Refused
from orbitune.errors import InputError, OrbituneError

logger = logging.getLogger(__name__)

PAGE = Path(__file__).with_name("page")
FILES = {
    "/": (PAGE / "index.html", "text/html"),
    "/report.css": (PAGE.parents[1] / "report" / "templates" / "page.css", "text/css"),
    "/app.css": (PAGE / "app.css", "text/css"),
    "/main.js": (PAGE / "main.js", "text/javascript"),
    "/ask.js": (PAGE / "ask.js", "text/javascript"),
    "/explore.js": (PAGE / "explore.js", "text/javascript"),
    "/sketch.js": (PAGE / "sketch.js", "text/javascript"),
    "/fit.js": (PAGE / "fit.js", "text/javascript"),
}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "X-Content-Type-Options": "nosniff",
}
TOKEN_HEADER = "X-Orbitune-Token"
_LINGER = 2**23  # bytes of a refused body that are read and thrown away, so that the refusal arrives


class AppServer(ThreadingHTTPServer):
    """Listens as soon as it is made; ``serve_forever`` answers."""

    daemon_threads = True

    def __init__(self, api: Api, host: str = "127.0.0.1", port: int = 0):
        self.api, self.host, self.token = api, host, secrets.token_urlsafe(16)
        if ":" in host:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((host, port), Handler)
        except OSError as error:
            reason = error.strerror or str(error)
            raise InputError(
                f"cannot listen on {host}, port {port}: {reason}. Choose another port (--port 0 takes a free one)"
            ) from error
        except OverflowError as error:
            raise InputError(f"a port is a number from 0 to 65535, got {port}") from error

    def server_bind(self) -> None:
        """Without the look-up of our own name, which may take its time."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.host, self.server_address[1]

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{name}]' if ':' in name else name}:{self.server_port}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away in the middle is nothing to report."""
        logger.debug("connection with %s broke", client_address, exc_info=True)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    server: AppServer  # ty: ignore[incompatible-mutable-override]
    protocol_version = "HTTP/1.1"
    timeout = 60.0  # seconds without a byte
    server_version, sys_version = "orbitune", ""

    def do_GET(self) -> None:
        """A file of the page, or an endpoint that reads."""
        self._answer("GET")

    def do_POST(self) -> None:
        """An endpoint that does something."""
        self._answer("POST")

    def _answer(self, method: str) -> None:
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query))
        body = _Body(self.rfile, 0)
        try:
            self._check_sender()
            if method == "GET" and address.path in FILES:
                self._send_file(address.path, query)
                return
            endpoint = self._endpoint(method, address.path)
            self._check_token(self.headers.get(TOKEN_HEADER, ""))
            body = self._body(endpoint)
            answer = endpoint.answer(Request(query, body))
            body.read()  # what nobody asked for would be taken for the beginning of the next request
            self._send_json(HTTPStatus.OK, answer)
        except Refused as refusal:
            self._refuse(refusal.status, str(refusal), body)
        except OrbituneError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error), body)
        except ConnectionError:
            raise
        except OSError as error:
            reason = f"{error.strerror or error}: {error.filename or ''}"
            self._refuse(HTTPStatus.BAD_REQUEST, f"the file system says no. {reason}", body)
        except Exception as error:
            logger.exception("%s %s failed", method, address.path)
            sentence = f"a mistake of the app, not yours ({type(error).__name__}); the terminal shows more"
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, sentence, body)

    def _check_sender(self) -> None:
        host = self.headers.get("Host", "")
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            name = ""
        if not (_is_address(name) or name in ("localhost", self.server.host.lower())):
            raise Refused(f"this server is not called {host!r}: use the address it printed", HTTPStatus.FORBIDDEN)
        origin = self.headers.get("Origin")
        if origin is not None and origin != f"http://{host}":
            raise Refused(f"requests from {origin} are not answered", HTTPStatus.FORBIDDEN)

    def _check_token(self, token: str) -> None:
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            raise Refused(
                "the token is missing or of another session: open the address that `orbitune app` printed",
                HTTPStatus.FORBIDDEN,
            )

    def _endpoint(self, method: str, path: str) -> Endpoint:
        endpoints = self.server.api.endpoints
        if (method, path) in endpoints:
            return endpoints[method, path]
        if path in FILES or any(known == path for _, known in endpoints):
            raise Refused(f"{path} does not take {method}", HTTPStatus.METHOD_NOT_ALLOWED)
        raise Refused(f"there is nothing at {path}", HTTPStatus.NOT_FOUND)

    def _body(self, endpoint: Endpoint) -> "_Body":
        """The body, which has the announced length and the type that the endpoint takes."""
        if endpoint.content_type is None:
            return _Body(self.rfile, 0)
        if self.headers.get_content_type() != endpoint.content_type:
            sentence = f"expected {endpoint.content_type}, got {self.headers.get_content_type()}"
            raise Refused(sentence, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise Refused("the length of the request is not stated", HTTPStatus.LENGTH_REQUIRED)
        if int(length) > endpoint.max_bytes:
            raise Refused(
                f"this is too large: {int(length) / 2**20:,.1f} MB, at most {endpoint.max_bytes / 2**20:,.0f} MB are "
                "taken",
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
        return _Body(self.rfile, int(length))

    def _send_file(self, path: str, query: dict[str, str]) -> None:
        if path == "/":
            self._check_token(query.get("token", ""))
        file, kind = FILES[path]
        self._send(HTTPStatus.OK, f"{kind}; charset=utf-8", file.read_bytes())

    def _send_json(self, status: HTTPStatus, values: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(values).encode())

    def _refuse(self, status: HTTPStatus, sentence: str, body: "_Body") -> None:
        """Say why not. What was sent and not read is in the way of the next request, so the connection ends."""
        self.close_connection = True
        self._send_json(status, {"error": sentence})
        announced = self.headers.get("Content-Length", "")
        unread = int(announced) - body.taken if announced.isdecimal() else 0
        _Body(self.rfile, max(0, min(unread, _LINGER))).read()

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Requests that are no proper HTTP get a sentence, too."""
        self.close_connection = True
        self._send_json(HTTPStatus(code), {"error": message or HTTPStatus(code).phrase})

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's business but the debugger's."""
        logger.debug(format, *args)


class _Body(io.RawIOBase):
    """The next ``length`` bytes of a stream, as a file that ends there."""

    def __init__(self, stream: io.BufferedIOBase, length: int):
        self.stream, self.length, self.taken = stream, length, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as the body goes."""
        piece = self.stream.read(min(len(buffer), self.length - self.taken))
        if not piece and self.taken < self.length:
            raise ConnectionError("the browser went away")
        buffer[: len(piece)] = piece
        self.taken += len(piece)
        return len(piece)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
