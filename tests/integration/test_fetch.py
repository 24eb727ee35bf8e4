"""Downloads from a server on the loopback address that behaves, or does not."""

import errno
import gzip
import hashlib
import re
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from orbitune.data import REMOTE, fetch
from orbitune.data.download import RemoteFile, download
from orbitune.errors import DownloadError, InputError

CONTENT = np.random.default_rng(0).bytes(1_000_000)


@dataclass
class Server:
    """Files by path, faults to show, and what was asked."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    ranges_honoured: bool = True
    cuts: list[int] = field(default_factory=list)
    """After how many bytes of an answer the connection is cut, for the first requests."""
    statuses: list[int] = field(default_factory=list)
    """Answers to the first requests, instead of the file."""
    false_start: int = 0
    """Added to where a partial answer claims to start."""
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    """Path and Range of each request."""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.asked.append((handler.path, wanted))
        content = self.files.get(handler.path)
        status = self.statuses.pop(0) if self.statuses else 200 if content is not None else 404
        if status != 200 or content is None:
            handler.send_error(status)
            return
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) if wanted and self.ranges_honoured else 0
        if start >= len(content):
            handler.send_error(416)
            return
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start + self.false_start}-{len(content) - 1}/{len(content)}")
        handler.send_header("Content-Length", str(len(content) - start))
        handler.end_headers()
        handler.wfile.write(content[start:][: self.cuts.pop(0) if self.cuts else None])


@pytest.fixture
def server(monkeypatch):
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            state.answer(self)

        def log_message(self, *_):
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("orbitune.data.download.PAUSE", 0.01)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        yield state
        http.shutdown()
        thread.join()


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def tiny(server, monkeypatch) -> Server:
    """The data set "tiny" of one file, on the server."""
    server.files["/tiny.bin"] = CONTENT
    file = RemoteFile("tiny.bin", (f"{server.url}/tiny.bin",), sha256(CONTENT), len(CONTENT))
    monkeypatch.setitem(REMOTE, "tiny", (file,))
    return server


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_arrives_whole_and_progress_is_told(tiny, tmp_path):
    told = []
    (path,) = fetch("tiny", tmp_path, lambda *step: told.append(step))
    assert path == tmp_path / "tiny" / "tiny.bin" and path.read_bytes() == CONTENT
    assert names(path.parent) == {"tiny.bin"}
    assert told[-1] == ("tiny.bin", len(CONTENT), len(CONTENT))
    assert [done for _, done, _ in told] == sorted({done for _, done, _ in told})


def test_what_is_there_is_not_fetched_again(tiny, tmp_path):
    assert fetch("tiny", tmp_path) == fetch("tiny", tmp_path)
    assert len(tiny.asked) == 1


def test_what_is_there_but_wrong_is_replaced(tiny, tmp_path, caplog):
    (path,) = fetch("tiny", tmp_path)
    path.write_bytes(b"something else")
    fetch("tiny", tmp_path)
    assert path.read_bytes() == CONTENT
    assert "differs from the published file" in caplog.text


def test_the_default_place_is_the_data_directory(tiny, tmp_path, monkeypatch):
    monkeypatch.setenv("ORBITUNE_DATA", str(tmp_path / "here"))
    assert fetch("tiny") == (tmp_path / "here" / "tiny" / "tiny.bin",)


# ------------------------------------------------------------------------------------------------- broken connections


def test_a_cut_connection_is_resumed_where_it_broke(tiny, tmp_path):
    tiny.cuts = [300_000, 200_000]
    (path,) = fetch("tiny", tmp_path)
    assert path.read_bytes() == CONTENT
    assert [asked for _, asked in tiny.asked] == [None, "bytes=300000-", "bytes=500000-"]


def test_many_cuts_do_not_matter_as_long_as_it_gets_further(tiny, tmp_path):
    tiny.cuts = [100_000] * 8
    (path,) = fetch("tiny", tmp_path)
    assert path.read_bytes() == CONTENT and len(tiny.asked) == 9


def test_a_later_call_continues(tiny, tmp_path):
    tiny.cuts = [400_000, 0, 0]
    with pytest.raises(DownloadError, match=r"closed after 400,000 of 1,000,000.*400,000 bytes that arrived are kept"):
        fetch("tiny", tmp_path)
    assert names(tmp_path / "tiny") == {"tiny.bin.part"}
    tiny.asked.clear()
    (path,) = fetch("tiny", tmp_path)
    assert path.read_bytes() == CONTENT
    assert [asked for _, asked in tiny.asked] == ["bytes=400000-"]


def test_a_server_that_ignores_ranges_starts_again(tiny, tmp_path):
    tiny.ranges_honoured = False
    tiny.cuts = [300_000]
    (path,) = fetch("tiny", tmp_path)
    assert path.read_bytes() == CONTENT
    assert [asked for _, asked in tiny.asked] == [None, "bytes=300000-"]


def test_a_server_that_ignores_ranges_and_always_breaks_off_is_given_up(tiny, tmp_path):
    tiny.ranges_honoured = False
    tiny.cuts = [300_000] * 100
    with pytest.raises(DownloadError, match=r"closed after 300,000 of 1,000,000 bytes \(3 attempts\)"):
        fetch("tiny", tmp_path)
    assert len(tiny.asked) == 3


def test_a_wrong_range_is_not_appended(tiny, tmp_path):
    tiny.cuts = [300_000]
    tiny.false_start = 5
    (path,) = fetch("tiny", tmp_path)
    assert path.read_bytes() == CONTENT
    assert [asked for _, asked in tiny.asked] == [None, "bytes=300000-", None]


def test_a_busy_server_is_asked_again(tiny, tmp_path):
    tiny.statuses = [503, 429]
    (path,) = fetch("tiny", tmp_path)
    assert path.read_bytes() == CONTENT


def test_a_run_that_ended_before_the_last_step_is_completed(tiny, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "tiny.bin.part").write_bytes(CONTENT)
    (path,) = fetch("tiny", tmp_path)
    assert path.read_bytes() == CONTENT and tiny.asked == []


def test_the_same_without_a_known_size(server, tmp_path):
    server.files["/file"] = CONTENT
    (tmp_path / "file.part").write_bytes(CONTENT)
    download(RemoteFile("file", (f"{server.url}/file",), sha256(CONTENT)), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT


# ------------------------------------------------------------------------------------------------------------- failures


def test_a_wrong_checksum_deletes_the_file_and_says_so(tiny, tmp_path):
    tiny.files["/tiny.bin"] = CONTENT[::-1]
    with pytest.raises(DownloadError, match=r"arrived with the checksum sha256:.*, expected sha256:.*it was deleted"):
        fetch("tiny", tmp_path)
    assert names(tmp_path / "tiny") == set()


def test_a_stale_part_is_found_out_and_the_next_call_succeeds(tiny, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "tiny.bin.part").write_bytes(b"old" * 1000)
    with pytest.raises(DownloadError, match="run again"):
        fetch("tiny", tmp_path)
    assert fetch("tiny", tmp_path)[0].read_bytes() == CONTENT


def test_a_file_of_another_size_is_refused_before_it_is_fetched(tiny, tmp_path):
    tiny.files["/tiny.bin"] = b"<html>moved</html>"
    with pytest.raises(DownloadError, match="has a file of 18 bytes, expected 1,000,000"):
        fetch("tiny", tmp_path)


def test_not_found_is_not_asked_again(tiny, tmp_path):
    tiny.files.clear()
    with pytest.raises(DownloadError, match=r"could not fetch tiny\.bin\. .*HTTP 404.*by hand"):
        fetch("tiny", tmp_path)
    assert len(tiny.asked) == 1


def test_the_next_server_is_asked(server, tmp_path):
    server.files["/mirror/file"] = CONTENT
    urls = (f"{server.url}/gone/file", f"{server.url}/mirror/file")
    download(RemoteFile("file", urls, f"md5:{hashlib.md5(CONTENT).hexdigest()}"), tmp_path / "file")
    assert [path for path, _ in server.asked] == ["/gone/file", "/mirror/file"]


def test_nothing_listening(server, tmp_path):
    with socket.socket() as unused:  # bound, but not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match=rf"{url}: .*refused.*\(3 attempts\).*Are you online\?"):
            download(RemoteFile("file", (url,), sha256(b"")), tmp_path / "file")
    assert names(tmp_path) == set()


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(
        InputError, match=r"unknown data set to fetch 'imagenet'; choose one of: cifar10, fashion-mnist"
    ):
        fetch("imagenet")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a device that is always full")
def test_a_full_disk(tiny, tmp_path):
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "tiny.bin.part").symlink_to("/dev/full")
    with pytest.raises(DownloadError, match=r"the disk is full\. Free some room, or set ORBITUNE_DATA") as raised:
        fetch("tiny", tmp_path)
    assert raised.value.__cause__.errno == errno.ENOSPC


def test_no_room_is_said_before_the_download(server, tmp_path):
    with pytest.raises(DownloadError, match="no room for huge: 1,000,000,000,000 MB are missing"):
        download(RemoteFile("huge", (f"{server.url}/huge",), sha256(b""), 10**18), tmp_path / "huge")
    assert server.asked == []


def test_a_folder_that_cannot_be_made(tiny, tmp_path):
    (tmp_path / "tiny").write_text("a file in the way")
    with pytest.raises(DownloadError, match=r"could not write .*tiny\.bin"):
        fetch("tiny", tmp_path)


# ------------------------------------------------------------------------------------------------------------ unpacking


def test_gzipped_files_are_unpacked_once(server, tmp_path, monkeypatch):
    packed = gzip.compress(CONTENT, 1)
    server.files["/x.h5.gz"] = packed
    file = RemoteFile("x.h5.gz", (f"{server.url}/x.h5.gz",), sha256(packed), len(packed), gunzip=True)
    monkeypatch.setitem(REMOTE, "packed", (file,))
    (path,) = fetch("packed", tmp_path)
    assert path.name == "x.h5" and path.read_bytes() == CONTENT
    assert names(path.parent) == {"x.h5"}
    assert fetch("packed", tmp_path) == (path,) and len(server.asked) == 1


def test_every_published_file_has_servers_and_a_checksum():
    for files in REMOTE.values():
        for file in files:
            algorithm, _, digest = file.checksum.partition(":")
            assert len(digest) == {"sha256": 64, "md5": 32}[algorithm] and int(digest, 16)
            assert file.urls and all(url.startswith("http") and url.endswith("/" + file.name) for url in file.urls)
