"""A proxy between the arena and its services that breaks answers: some by chance, others as a test tells it.

It passes every request on and breaks the answer on its way back, so that a gateway has billed what never arrives. It
takes the alerts of the arena too, at the path `/alerts`.
"""

import json
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Lock
from typing import Any

import httpx

ALERTS = "/alerts"
VENUES, GATEWAY, EVIDENCE = "/(gamma|clob|kalshi)/", "/openrouter/.*/completions", "/exa/"
ANY = f"{VENUES}|{GATEWAY}|{EVIDENCE}"
LOOKS_S = 0.2
"""Between two looks whether a client that gets no answer has gone."""
PIECES, PAUSE_S = 20, 0.02
"""Of a slow body."""
UNUSED_HEADERS = {"host", "content-length", "accept-encoding", "connection"}
"""Of a request; the proxy's own client states them."""
SENT_HEADERS = {"content-type", "x-generation-id", "retry-after"}


@dataclass(frozen=True)
class Answer:
    """An answer of a service."""

    status: int
    content: bytes
    headers: Mapping[str, str]


Act = Callable[["ProxyHandler", Answer], None]


@dataclass(frozen=True)
class Break:
    """A fault: its name, the paths that it befalls, what it does with an answer, and how often by chance."""

    name: str
    paths: str
    act: Act
    share: float = 1.0


@dataclass(frozen=True)
class Edit:
    """A service that says otherwise: what it changes in each row of an answer, if anything, and returns then."""

    name: str
    paths: str
    change: Callable[[dict[str, Any]], bool]


# ── faults of one answer ──────────────────────────────────────────────────────────────────────────


def time_out(handler: "ProxyHandler", answer: Answer) -> None:
    """Sends nothing until the client has gone."""
    handler.close_connection = True
    handler.connection.settimeout(LOOKS_S)
    while True:
        try:
            if not handler.connection.recv(1):
                return
        except TimeoutError:
            continue


def cut(handler: "ProxyHandler", answer: Answer) -> None:
    """Sends half of the body, and closes."""
    handler.send_head(answer)
    handler.wfile.write(answer.content[: len(answer.content) // 2])
    handler.close_connection = True


def reset(handler: "ProxyHandler", answer: Answer) -> None:
    # Linger for zero seconds: closing sends a reset.
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True


def drip(handler: "ProxyHandler", answer: Answer) -> None:
    """Sends the body slowly, in small pieces."""
    handler.send_head(answer)
    size = len(answer.content) // PIECES + 1
    for start in range(0, len(answer.content), size):
        handler.wfile.write(answer.content[start : start + size])
        handler.wfile.flush()
        time.sleep(PAUSE_S)


def saying(status: int, body: Any, **headers: str) -> Act:
    """Sends another answer instead."""
    content = json.dumps(body).encode()
    lines = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, answer: handler.send_answer(Answer(status, content, lines))


def failing(status: int, **headers: str) -> Act:
    return saying(status, {"error": {"code": status, "message": f"broken on purpose: {status}"}}, **headers)


BY_CHANCE = (
    Break("time-out", ANY, time_out, 0.004),
    Break("cut body", ANY, cut, 0.01),
    Break("connection reset", ANY, reset, 0.01),
    Break("500", ANY, failing(500), 0.01),
    Break("503", ANY, failing(503), 0.01),
    Break("429 with Retry-After", ANY, failing(429, Retry_After="1"), 0.01),
    Break("wrong JSON", ANY, saying(200, "all is well"), 0.01),
    Break("slow bytes", ANY, drip, 0.02),
)


# ── the proxy ─────────────────────────────────────────────────────────────────────────────────────


class BreakingProxy(ThreadingHTTPServer):
    """A proxy in front of a sandbox: of the `breaks` the first that fits is thrown, after all `edits`."""

    daemon_threads = True

    def __init__(self, upstream: str, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), ProxyHandler)
        self.client = httpx.Client(base_url=upstream, timeout=60)
        self.dice, self.lock = Random(seed), Lock()
        self.breaks: Collection[Break] = BY_CHANCE
        self.edits: Collection[Edit] = ()
        self.thrown = Counter[str]()
        self.alerts: list[dict[str, Any]] = []
        """The messages to the webhook, oldest first."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def choose(self, path: str) -> Break | None:
        with self.lock:
            for fault in self.breaks:
                if re.match(fault.paths, path) and (fault.share == 1 or self.dice.random() < fault.share):
                    self.thrown[fault.name] += 1
                    return fault
        return None

    def edited(self, path: str, content: bytes) -> bytes:
        """The body of an answer with the rows of its list, or its only one, as the edits change them."""
        edits = [edit for edit in self.edits if re.match(edit.paths, path)]
        if not edits:
            return content
        body = json.loads(content)
        for edit in edits:
            changed = [edit.change(row) for row in body.get("markets", body.get("data", [body]))]
            self.thrown[edit.name] += any(changed)
        return json.dumps(body).encode()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are no news."""


class ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: BreakingProxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path.startswith(ALERTS):
            self.server.alerts.append(json.loads(body))
            self.send_answer(Answer(200, b"{}", {}))
            return
        fault = self.server.choose(self.path)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in UNUSED_HEADERS}
        response = self.server.client.request(self.command, self.path, content=body, headers=headers)
        content = self.server.edited(self.path, response.content)
        headers = {name: value for name, value in response.headers.items() if name in SENT_HEADERS}
        answer = Answer(response.status_code, content, headers)
        if fault is None:
            self.send_answer(answer)
        else:
            fault.act(self, answer)

    do_POST = do_GET

    def send_head(self, answer: Answer) -> None:
        self.send_response(answer.status)
        headers = {"content-type": "application/json", **answer.headers, "Content-Length": str(len(answer.content))}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_answer(self, answer: Answer) -> None:
        self.send_head(answer)
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None: ...
