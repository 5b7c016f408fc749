"""Requests that two servers may read differently: on gunicorn alone, and behind the documented nginx."""

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fronts import Server, nginx, served
from tests.season.running_site import serving

HOST = b"Host: localhost\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
"""What a request hides in its body or behind its end."""
GET, POST = b"GET /healthz HTTP/1.1\r\n" + HOST, b"POST /healthz HTTP/1.1\r\n" + HOST
LENGTH, CHUNKED = b"Content-Length: %d\r\n" % len(HIDDEN), b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(HIDDEN), HIDDEN)
END = b"0\r\n\r\n"
CLOSE = b"Connection: close\r\n"


def post(*headers: bytes, body: bytes = b"") -> bytes:
    return POST + b"".join(headers) + b"\r\n" + body


def chunked(*headers: bytes, size: bytes = b"%x" % len(HIDDEN), end: bytes = END) -> bytes:
    """A request whose body is one chunk."""
    return post(*(headers or (CHUNKED,)), body=size + b"\r\n" + HIDDEN + b"\r\n" + end)


REQUESTS = {
    # Bodies that hold a request, by their length and in chunks.
    "length": post(LENGTH, CLOSE, body=HIDDEN),
    "length of GET": GET + LENGTH + CLOSE + b"\r\n" + HIDDEN,
    "chunks": chunked(CHUNKED, CLOSE),
    "chunk with extension": chunked(CHUNKED, CLOSE, size=b"%x;a=b" % len(HIDDEN)),
    "trailer": chunked(CHUNKED, CLOSE, end=b"0\r\nX-Trailer: a\r\n\r\n"),
    "coding in capitals": chunked(b"TRANSFER-ENCODING: Chunked\r\n", CLOSE),
    "length in HTTP/1.0": post(LENGTH, body=HIDDEN).replace(b"/1.1\r\nHost", b"/1.0\r\nHost", 1),
    # Both, or two of one.
    "length and chunks": post(b"Content-Length: 5\r\n", CHUNKED, body=END + HIDDEN),
    "chunks and length": post(CHUNKED, b"Content-Length: 5\r\n", body=END + HIDDEN),
    "length and chunks in HTTP/1.0": post(LENGTH, CHUNKED, body=END + HIDDEN).replace(b"/1.1", b"/1.0", 1),
    "chunks in HTTP/1.0": post(CHUNKED, body=END + HIDDEN).replace(b"/1.1", b"/1.0", 1),
    "two lengths": post(b"Content-Length: 0\r\n", LENGTH, body=HIDDEN),
    "two equal lengths": post(LENGTH, LENGTH, body=HIDDEN),
    "list of lengths": post(b"Content-Length: 0, %d\r\n" % len(HIDDEN), body=HIDDEN),
    "chunked twice": post(CHUNKED, CHUNKED, body=END + HIDDEN),
    "chunked, chunked": post(b"Transfer-Encoding: chunked, chunked\r\n", body=END + HIDDEN),
    # Codings that one server knows and the other not.
    "identity": post(b"Transfer-Encoding: identity\r\n", LENGTH, body=HIDDEN),
    "identity alone": post(b"Transfer-Encoding: identity\r\n", body=HIDDEN),
    "gzip": post(b"Transfer-Encoding: gzip\r\n", LENGTH, body=HIDDEN),
    "gzip, chunked": post(b"Transfer-Encoding: gzip, chunked\r\n", body=END + HIDDEN),
    "chunked, gzip": post(b"Transfer-Encoding: chunked, gzip\r\n", body=END + HIDDEN),
    "xchunked": post(b"Transfer-Encoding: xchunked\r\n", LENGTH, body=HIDDEN),
    "chunked in quotes": post(b'Transfer-Encoding: "chunked"\r\n', LENGTH, body=HIDDEN),
    "empty coding": post(b"Transfer-Encoding: \r\n", LENGTH, body=HIDDEN),
    "coding behind a vertical tab": post(b"Transfer-Encoding:\x0bchunked\r\n", LENGTH, body=HIDDEN),
    "coding with a null": post(b"Transfer-Encoding: chunked\x00\r\n", LENGTH, body=HIDDEN),
    "coding in an underscore": post(b"Transfer_Encoding: chunked\r\n", b"Content-Length: 0\r\n", CLOSE),
    # Lengths that are no number.
    "negative length": post(b"Content-Length: -1\r\n", body=HIDDEN),
    "length with a plus": post(b"Content-Length: +%d\r\n" % len(HIDDEN), body=HIDDEN),
    "length in hexadecimal": post(b"Content-Length: 0x10\r\n", body=HIDDEN),
    "length with an underscore": post(b"Content-Length: 1_0\r\n", body=HIDDEN),
    "length in other digits": post("Content-Length: \u0661\r\n".encode(), body=HIDDEN),
    "length with spaces inside": post(b"Content-Length: 1 0\r\n", body=HIDDEN),
    "empty length": post(b"Content-Length: \r\n", body=HIDDEN),
    "fraction as length": post(b"Content-Length: 1.0\r\n", body=HIDDEN),
    "length above 64 bits": post(b"Content-Length: 99999999999999999999\r\n", body=HIDDEN),
    # Spaces and ends of lines in headers.
    "space before the colon": post(b"Content-Length : %d\r\n" % len(HIDDEN), body=HIDDEN),
    "tab before the colon": post(b"Transfer-Encoding\t: chunked\r\n", body=END + HIDDEN),
    "space before the name": post(b" Content-Length: %d\r\n" % len(HIDDEN), body=HIDDEN),
    "first header folded": POST.partition(b"Host")[0] + b" X: a\r\n" + HOST + LENGTH + b"\r\n" + HIDDEN,
    "folded coding": post(b"Transfer-Encoding:\r\n chunked\r\n", body=END + HIDDEN),
    "folded header": post(b"X-A: a\r\n\tb\r\n", LENGTH, body=HIDDEN),
    "header without a colon": post(b"Content-Length\r\n", body=HIDDEN),
    "header without a name": post(b": a\r\n", LENGTH, body=HIDDEN),
    "null in a header": post(b"X-A: a\x00b\r\n", LENGTH, body=HIDDEN),
    "return inside a header": post(b"X-A: a\rContent-Length: 5\r\n", LENGTH, body=HIDDEN),
    "return before the name": post(b"\rContent-Length: 5\r\n", LENGTH, body=HIDDEN),
    "line feeds alone": post(LENGTH, CLOSE).replace(b"\r\n", b"\n") + HIDDEN,
    "line feed before a length": post(b"X-A: a\nContent-Length: %d\r\n" % len(HIDDEN), body=HIDDEN),
    "header of 30,000 spaces": post(b"X-A:" + b" " * 30_000 + b"\r\n", LENGTH, body=HIDDEN),
    "2,000 headers": post(*(b"X-%d: a\r\n" % number for number in range(2000)), LENGTH, body=HIDDEN),
    # Chunks that are read in two ways.
    "chunk with a sign": chunked(size=b"+%x" % len(HIDDEN)),
    "negative chunk": chunked(size=b"-1"),
    "chunk as 0x": chunked(size=b"0x%x" % len(HIDDEN)),
    "chunk with an underscore": chunked(size=b"1_0"),
    "chunk without a size": chunked(size=b""),
    "chunk in no number": chunked(size=b"z"),
    "chunk above 64 bits": chunked(size=b"1" + b"0" * 16 + b"5"),
    "chunk with a space": chunked(size=b"%x " % len(HIDDEN)),
    "chunk longer than said": post(CHUNKED, body=b"5\r\nabcdefgh\r\n" + END + HIDDEN),
    "chunk without its end": post(CHUNKED, body=b"3\r\nabc" + END + HIDDEN),
    "chunk with a return in its extension": chunked(size=b"%x;a\rb" % len(HIDDEN)),
    "chunks by line feeds": post(CHUNKED, body=b"3\nabc\n0\n\n" + HIDDEN),
    "extension by a line feed": post(CHUNKED, body=b"0;\n\r\n" + HIDDEN),
    "trailer with a length": chunked(CHUNKED, CLOSE, end=b"0\r\nContent-Length: 9\r\n\r\n"),
    "trailer with a space": chunked(CHUNKED, end=b"0\r\nX : a\r\n\r\n"),
    # Lines of the request.
    "two spaces": b"GET  /healthz HTTP/1.1\r\n" + HOST + b"\r\n" + HIDDEN,
    "tabs": b"GET\t/healthz\tHTTP/1.1\r\n" + HOST + b"\r\n" + HIDDEN,
    "no version": b"GET /healthz\r\n" + HOST + b"\r\n" + HIDDEN,
    "version 1.11": b"GET /healthz HTTP/1.11\r\n" + HOST + b"\r\n" + HIDDEN,
    "version 3": b"GET /healthz HTTP/3.0\r\n" + HOST + b"\r\n" + HIDDEN,
    "another protocol": b"GET /healthz FTP/1.1\r\n" + HOST + b"\r\n" + HIDDEN,
    "method in small letters": b"get /healthz HTTP/1.1\r\n" + HOST + b"\r\n" + HIDDEN,
    "space behind the version": b"GET /healthz HTTP/1.1 \r\n" + HOST + CLOSE + b"\r\n" + HIDDEN,
    "space in the path": b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n" + HIDDEN,
    "null in the path": b"GET /\x00 HTTP/1.1\r\n" + HOST + b"\r\n" + HIDDEN,
    "path of 100 kB": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n" + HIDDEN,
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN,
    # Hosts.
    "two hosts": GET + HOST + b"\r\n" + HIDDEN,
    "two other hosts": GET + b"Host: elsewhere.example\r\n\r\n" + HIDDEN,
    "list of hosts": b"GET / HTTP/1.1\r\nHost: localhost, elsewhere.example\r\n" + CLOSE + b"\r\n",
    "host behind a space": b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n" + HIDDEN,
    "address of another host": b"GET http://elsewhere.example/ HTTP/1.1\r\n" + HOST + CLOSE + b"\r\n",
    "upgrade": GET
    + b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings, close\r\n\r\n",
    "unknown expectation": post(b"Expect: magic\r\n", LENGTH, body=HIDDEN),
}
"""85 requests, each of which holds another where two servers may disagree on its end."""

ONE, REFUSED, BOTH = "answered once", "refused", "answered twice, since its end is clear to this server"
WHOLE = {
    "length", "length of GET", "chunks", "chunk with extension", "trailer", "coding in capitals", "length in HTTP/1.0",
    "coding in an underscore", "trailer with a length", "address of another host", "upgrade",
}  # fmt: skip
READ = {
    # The site answers by the headers; the connection ends with the body that can not be read.
    "gunicorn": {
        *WHOLE, "gzip, chunked", "length above 64 bits", "chunks by line feeds", "extension by a line feed",
        "negative chunk", "trailer with a space", "chunk with a sign", "chunk as 0x", "chunk with an underscore",
        "chunk without a size", "chunk in no number", "chunk above 64 bits", "chunk with a space",
        "chunk longer than said", "chunk without its end", "chunk with a return in its extension",
    },
    # It passes on what it has read in words of its own: a line feed, a space, an odd version are gone behind it.
    "nginx": {
        *WHOLE, "line feeds alone", "line feed before a length", "chunk with a space", "trailer with a space",
        "no version", "space behind the version", "unknown expectation",
    },
}  # fmt: skip
"""What each server reads as one request. Alone, gunicorn never reads two."""
TWO: dict[str, set[str]] = {
    "gunicorn": set(),
    "nginx": {"chunks by line feeds", "extension by a line feed", "two spaces", "version 1.11"},
}


@pytest.fixture(scope="module", params=["gunicorn", pytest.param("nginx", marks=pytest.mark.nginx)])
def server(
    request: pytest.FixtureRequest, migrated_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Server]]:
    folder = tmp_path_factory.mktemp("framing")
    with ExitStack() as stack:
        site = stack.enter_context(serving(Path(shutil.copy(migrated_file, folder / "arena.sqlite3"))))
        front = stack.enter_context(nginx("compose.yaml", site, folder)) if request.param == "nginx" else served(site)
        yield request.param, front


def reading(answer: bytes) -> str:
    """How a request was read, by the answers: the hidden request's is 404."""
    statuses = re.findall(rb"HTTP/1\.[01] (\d{3})", answer)
    if b"404" in statuses:
        return BOTH
    return ONE if answer and statuses[:1] in ([], [b"200"], [b"403"], [b"405"]) else REFUSED  # HTTP/0.9 has no status


def test_no_request_hides_another(server: tuple[str, Server]) -> None:
    name, address = server

    def exchange(case: str) -> bytes:
        # A request that is read as two ends the connection itself.
        silence_s = 60 if case in TWO[name] else 2
        return address.exchange(REQUESTS[case], ends=name == "gunicorn", silence_s=silence_s)

    together = REQUESTS.keys() - TWO[name]
    with ThreadPoolExecutor(16) as clients:
        answers = dict(zip(together, clients.map(exchange, together), strict=True))
    # A second answer that a busy server is late with would be missed: these are asked one by one.
    answers |= {case: exchange(case) for case in TWO[name]}
    assert len(answers) == 85
    for case, answer in answers.items():
        expected = ONE if case in READ[name] else BOTH if case in TWO[name] else REFUSED
        assert reading(answer) == expected, (case, answer)


def test_wrong_host_is_one_line_in_the_log(migrated_file: Path, tmp_path: Path) -> None:
    with serving(Path(shutil.copy(migrated_file, tmp_path / "arena.sqlite3"))) as site:
        log = site.database.with_suffix(".log")
        for path in (b"/", b"/api/v1/"):
            answer = served(site).exchange(
                b"GET " + path + b" HTTP/1.1\r\nHost: elsewhere.example\r\n" + CLOSE + b"\r\n"
            )
            assert answer.startswith(b"HTTP/1.1 400 ")
        assert "Traceback" not in log.read_text()
        assert len(log.read_text().splitlines()) == 2
