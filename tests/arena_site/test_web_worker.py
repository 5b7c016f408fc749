"""The web server's own answers: to requests that are too large, ambiguous or unreadable."""

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from arena_site.operations.web_worker import LARGEST_REQUEST
from tests.season.running_site import Site, serving

HOST = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BOTH = b"Content-Length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def small_site(migrated_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site over an empty database."""
    with serving(Path(shutil.copy(migrated_file, tmp_path_factory.mktemp("web") / "arena.sqlite3"))) as site:
        yield site


def exchange(site: Site, request: bytes) -> tuple[bytes, bytes]:
    """Headers and body of the response to these bytes."""
    address = urlsplit(site.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as client:
        client.sendall(request)
        received = b""
        while part := client.recv(65536):
            received += part
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body


@pytest.mark.parametrize(
    ("request_", "status", "detail"),
    [
        (b"POST /api/v1/exports/ HTTP/1.1\r\n" + HOST + BOTH, 400, "Content-Length and Transfer-Encoding"),
        (b"POST /api/v1/exports/ HTTP/1.0\r\n" + HOST + BOTH, 400, "Content-Length and Transfer-Encoding"),
        (b"GET /api/v1/ HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400, "Host must be given once"),
        (b"GET /api/v1/ HTTP/1.1\r\n" + HOST + b"Host : x\r\n\r\n", 400, "Invalid header"),
        (b"POST /api/v1/exports/ HTTP/1.1\r\n" + HOST + b"Content-Length: 99999999\r\n\r\n", 413, "exceeds max_body"),
        (b"POST /api/v1/exports/ HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501, "not supported"),
        (b"GET http://localhost/api/v1/ HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400, "Host must be given once"),
        (b"GET HTTPS://localhost:1/api/v1/ HTTP/1.1\r\n" + HOST + b"Host : x\r\n\r\n", 400, "Invalid header"),
        (b"GET  /api/v1/ HTTP/1.1\r\n" + HOST + b"\r\n", 400, "Start line is invalid"),
    ],
    ids=[
        "both lengths",
        "both lengths in HTTP/1.0",
        "two hosts",
        "no header",
        "too long",
        "another coding",
        "absolute address",
        "absolute address and no header",
        "two spaces",
    ],
)
def test_refusal_is_a_problem_and_ends_the_connection(
    small_site: Site, request_: bytes, status: int, detail: str
) -> None:
    head, body = exchange(small_site, request_ + b"GET /smuggled HTTP/1.1\r\n\r\n")
    assert head.split(b" ")[1] == b"%d" % status
    assert b"Content-Type: application/problem+json" in head
    problem = json.loads(body)
    assert set(problem) == {"type", "title", "status", "detail"}
    assert (problem["status"], detail in problem["detail"]) == (status, True)


@pytest.mark.parametrize("host", [HOST + HOST, HOST + b"Host: <b>\r\n", HOST + b"Host : x\r\n"])
def test_refusal_outside_the_api_is_a_page(small_site: Site, host: bytes) -> None:
    head, body = exchange(small_site, b"GET /search/?q=<i> HTTP/1.1\r\n" + host + b"\r\n")
    assert head.split(b" ")[1] == b"400"
    assert b"Content-Type: text/html" in head
    assert b"<h1>Bad Request</h1>" in body
    assert b"<b>" not in body


def test_client_that_sends_a_body_over_the_limit_reads_the_problem(small_site: Site) -> None:
    answer = httpx.post(f"{small_site.url}/api/v1/exports/", content=b"x" * (LARGEST_REQUEST + 1), verify=False)
    assert (answer.status_code, answer.headers["Content-Type"]) == (413, "application/problem+json")


@pytest.mark.parametrize("host", [b"Host: elsewhere.example\r\n", b"Host: a b\r\n", HOST + HOST])
def test_wrong_host_is_no_traceback_in_the_log(small_site: Site, host: bytes) -> None:
    log = small_site.database.with_suffix(".log")
    before = len(log.read_text())
    for path in (b"/", b"/api/v1/"):
        head, _ = exchange(small_site, b"GET " + path + b" HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400 ")
    assert "Traceback" not in log.read_text()[before:]
    lines = log.read_text()[before:].splitlines()
    assert len(lines) == (0 if host == HOST + HOST else 2)
