"""Clients that send half a request, or do not read their response, and the server commands that must withstand them."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest

from tests.databases import PROJECT
from tests.season.running_site import Site

CLIENTS = 200
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
HALF_A_BODY = b"POST /api/v1/exports/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"
LARGEST_FILE = b"/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
NEVER_READ = b"GET %b HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: identity\r\n\r\n" % LARGEST_FILE * 20
DOCUMENTED = ("README.md", "Dockerfile", "compose.yaml", *(f"docs/{name}.md" for name in ("deploy", "operate")))


@pytest.fixture
def slow_requests(request: pytest.FixtureRequest, site: Site) -> Iterator[None]:
    """200 clients that have each sent the same bytes, and neither send more nor read."""
    address = urlsplit(site.url)
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            client = stack.enter_context(socket.create_connection((address.hostname, address.port), timeout=10))
            client.sendall(request.param)
        yield


@pytest.mark.parametrize(
    "slow_requests", [HALF_A_HEAD, HALF_A_BODY, NEVER_READ], ids=["head", "body", "reader"], indirect=True
)
def test_slow_clients_stop_nobody_else(slow_requests: None, site: Site) -> None:
    with httpx.Client(base_url=site.url, timeout=20, verify=False) as visitor:
        answers = {path: visitor.get(path).status_code for path in ("/healthz", "/", "/cohorts/", "/api/v1/cohorts/")}
    assert set(answers.values()) == {200}, answers


def test_head_gets_the_headers_alone_and_is_no_matter_for_the_log(site: Site) -> None:
    log = site.database.with_suffix(".log")
    before = log.read_text()
    with httpx.Client(base_url=site.url, timeout=20, verify=False) as visitor:
        full_response = visitor.get("/cohorts/", headers={"Accept-Encoding": "identity"})
        for path in ("/cohorts/", "/api/v1/cohorts/", "/static/arena/arena.css"):
            answer = visitor.head(path, headers={"Accept-Encoding": "identity"})
            assert (answer.status_code, answer.content) == (200, b""), path
        assert visitor.head("/cohorts/", headers={"Accept-Encoding": "identity"}).headers["Content-Length"] == str(
            len(full_response.content)
        )
    assert log.read_text() == before


def test_every_documented_server_command_buffers() -> None:
    commands = {name: re.findall(r"gunicorn\W+arena_site\.wsgi.*", (PROJECT / name).read_text()) for name in DOCUMENTED}
    lines = [(name, line) for name, command_lines in commands.items() for line in command_lines]
    assert len(lines) >= 3
    assert [name for name, line in lines if "arena_site.operations.web_worker.BufferingWorker" not in line] == []


def test_documented_fronts_refuse_the_metrics() -> None:
    for name in ("docs/deploy.md", "compose.yaml"):
        assert "location = /metrics { return 404; }" in (PROJECT / name).read_text(), name
