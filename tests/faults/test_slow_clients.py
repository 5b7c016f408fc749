"""Clients that send half a request, or do not read their response, and the server commands that must withstand them."""

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from tests.databases import PROJECT
from tests.faults.clusters import eventually
from tests.fronts import BLOCKS, Server, nginx
from tests.season.running_site import Site

pytestmark = [pytest.mark.slow, pytest.mark.thorough]  # a front knows no database

CLIENTS = 300
ATTACKER = "127.0.0.2"
"""The attacker's address: a front counts by client, and the visitor is another."""
HOST = b"Host: localhost\r\n"
HALF_A_HEAD = b"GET / HTTP/1.1\r\n" + HOST + b"X-Slow: "
HALF_A_BODY = b"POST /api/v1/submissions/ HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n{"
LARGEST_FILE = b"/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
NEVER_READ = b"GET %b HTTP/1.1\r\n%bAccept-Encoding: identity\r\n\r\n" % (LARGEST_FILE, HOST) * 20
DOCUMENTED = ("README.md", "Dockerfile", "compose.yaml", *(f"docs/{name}.md" for name in ("deploy", "operate")))


@pytest.fixture(scope="module", params=sorted(BLOCKS))
def front(request: pytest.FixtureRequest, site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The real nginx as the file of this name documents it, before the season's site."""
    with nginx(request.param, site, tmp_path_factory.mktemp("front")) as server:
        yield server


@pytest.fixture
def slow_requests(request: pytest.FixtureRequest, front: Server) -> Iterator[None]:
    """300 clients that have each sent the same bytes, and neither send more nor read."""
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            stack.enter_context(front.connect(ATTACKER)).sendall(request.param)
        yield


@pytest.mark.nginx
@pytest.mark.parametrize(
    "slow_requests",
    [b"", HALF_A_HEAD, HALF_A_BODY, NEVER_READ],
    ids=["silent", "head", "body", "reader"],
    indirect=True,
)
def test_slow_clients_stop_nobody_else(slow_requests: None, front: Server) -> None:
    with httpx.Client(base_url=front.url, timeout=5, verify=False, headers={"Host": "localhost"}) as visitor:
        answers = {path: visitor.get(path).status_code for path in ("/healthz", "/", "/cohorts/", "/api/v1/cohorts/")}
    assert set(answers.values()) == {200}, answers


@pytest.mark.nginx
def test_front_ends_what_comes_too_slowly(front: Server) -> None:
    with front.connect("127.0.0.3") as head, front.connect("127.0.0.3") as body:
        head.sendall(HALF_A_HEAD)
        body.sendall(HALF_A_BODY)
        for client in (head, body):  # each within its connection's 20 s
            assert (client.recv(1000) or b"HTTP/1.1 408").startswith(b"HTTP/1.1 408")


@pytest.mark.nginx
def test_front_counts_the_connections_and_requests_of_a_client(front: Server) -> None:
    with ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(front.connect(ATTACKER)).sendall(HALF_A_BODY)
        request = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"

        def answer() -> bytes:
            with front.connect(ATTACKER) as client:
                client.sendall(request)
                return client.recv(1000)

        eventually(lambda: answer().startswith(b"HTTP/1.1 429"), 8)  # before the half bodies time out
    transport = httpx.HTTPTransport(local_address="127.0.0.4", verify=False)
    headers = {"Host": "localhost"}
    client = httpx.Client(base_url=front.url, transport=transport, headers=headers, timeout=60)
    with client, ThreadPoolExecutor(16) as threads:  # one thread alone may be too slow for the limit
        statuses = Counter(threads.map(lambda _: client.get("/healthz").status_code, range(400)))
    assert statuses[200] >= 100
    assert statuses[429] > 0


@pytest.mark.nginx
def test_front_keeps_the_metrics_inside(front: Server) -> None:
    for path in (b"/metrics", b"//metrics", b"/./metrics", b"/%6detrics", b"/metrics?a=b", b"http://localhost/metrics"):
        answer = front.exchange(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 404"), path
        assert b"<center>nginx" in answer, f"{path!r} reached the site"


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


def test_every_documented_server_command_is_stock_gunicorn_on_loopback_or_in_a_container() -> None:
    commands = {name: re.findall(r"gunicorn\W+arena_site\.wsgi.*", (PROJECT / name).read_text()) for name in DOCUMENTED}
    lines = [(name, line) for name, command_lines in commands.items() for line in command_lines]
    assert len(lines) >= 3
    for name, line in lines:
        assert re.search(r"--preload\W+--worker-class\W+gthread\b", line), (name, line)
        assert "--bind 127.0.0.1:" in line or name == "Dockerfile", (name, line)
