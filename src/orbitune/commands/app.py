"""``orbitune app``: what was learned, live in the browser."""

import ipaddress
import signal
import threading
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from orbitune.app.api import Api
from orbitune.app.server import AppServer


def app(
    run: Annotated[
        Path | None, typer.Argument(help="Directory of a finished run. Without one, begin by fitting something.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on. Any other than this machine's own is a risk.")] = (
        "127.0.0.1"
    ),
    out: Annotated[Path, typer.Option(help="Directory for uploads and for runs that are started in the app.")] = (
        Path("orbitune-runs")
    ),
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Move an image along its learned orbit and beyond, and watch the prediction; or start a fit and watch it learn.

    The page is for you alone: it is served to this machine only, at an address with a secret in it. Ctrl-C ends it; a
    fit that is running is saved.

    Examples:

    `orbitune app run`

    `orbitune app --port 0 --no-browser`
    """
    console = Console(stderr=True)
    server = AppServer(Api(run, out), host, port)
    if not _is_local(host):
        console.print(
            f"Warning: {host} is not this machine alone. Whoever has the address printed below, with its token, can "
            "start fits and read images with your rights, and the connection is not encrypted.",
            style="yellow",
            markup=False,
            highlight=False,
        )
    typer.echo(f"Orbitune is at {server.url}")
    console.print("Ctrl-C ends it.", highlight=False)
    if not no_browser:  # some browsers run in the terminal and do not return
        threading.Thread(target=webbrowser.open, args=(server.url,), daemon=True).start()
    # Asked to end, or the terminal is gone: as with Ctrl-C, which a shell lets its background jobs ignore.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.default_int_handler)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
        fit = server.api.fits.current
        running = fit is not None and fit.active
        with suppress(OSError):  # nobody may be there to read it
            if running:
                console.print("Saving the fit that is running …", highlight=False)
        server.api.fits.close()
        with suppress(OSError):
            if running:
                console.print(f"Continue it with: orbitune fit --resume --out {fit.directory}", markup=False)
            console.print("Ended.", highlight=False)


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
