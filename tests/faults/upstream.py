"""Upstreams that misbehave: each fault as what a server does with a request, and a server that does nothing else."""

import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.answers import GPT, HOLD

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
TINY_TIMEOUT_S, TIMEOUT_S = 0.15, 5
"""How long an upstream may take: one that hangs is given up at once, any other must not fail for being slow."""


# ── servers that misbehave below HTTP ─────────────────────────────────────────────────────────────

Act = Callable[[socket.socket, threading.Event], None]


@contextmanager
def misbehaving(*behaviours: Act) -> Iterator[str]:
    """The address of a server that treats its nth request as the nth act says, and the rest as the last."""
    over = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for turn in range(1000):
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    _read_request(connection)
                    behaviours[min(turn, len(behaviours) - 1)](connection, over)
                except OSError:
                    continue  # the client has gone, as it should

    server = threading.Thread(target=serve)
    server.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        server.join()


def _read_request(connection: socket.socket) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _received(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    length = next(
        (int(header[15:]) for header in head.lower().split(b"\r\n") if header.startswith(b"content-length:")), 0
    )
    while len(body) < length:
        body += _received(connection)


def _received(connection: socket.socket) -> bytes:
    """The next bytes; ConnectionError if the client has closed the connection, as one does whose time is over."""
    if not (received := connection.recv(65536)):
        raise ConnectionError("the client has gone")
    return received


def saying(answer: bytes) -> Act:
    return lambda connection, over: connection.sendall(answer)


def whole(body: bytes) -> Act:
    return saying(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def dripping(first: bytes, drop: bytes) -> Act:
    def act(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(first)
        while not over.wait(0.02):
            connection.sendall(drop)

    return act


def silent(connection: socket.socket, over: threading.Event) -> None:
    connection.recv(1)  # until the client has had enough


def reset(connection: socket.socket, over: threading.Event) -> None:
    # Linger for zero seconds: closing sends a reset, not a farewell.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


truncated = saying(OK + b"Content-Length: 100\r\n\r\n" + b'{"half": ')
drips_its_body = dripping(OK + b"Content-Length: 100000\r\n\r\n[", b" ")
drips_its_header = dripping(OK, b"X")


def answering(status: int, body: Any = None, *headers: str) -> Act:
    """A complete answer; what is not bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body or {"error": f"scripted {status}"}).encode()
    head = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(content)}", "Connection: close", *headers]
    return saying("\r\n".join(head).encode() + b"\r\n\r\n" + content)


def completion(content: Any, *, choice: Any = None, message: Any = None, **body: Any) -> Act:
    """A gateway's completion that costs a cent, with changes at each of its depths."""
    inner = {"role": "assistant", "content": content} | (message or {})
    outer = {"index": 0, "finish_reason": "stop", "message": inner} | (choice or {})
    return answering(200, {"id": "gen-1", "model": GPT, "choices": [outer], "usage": {"cost": 0.01}} | body)


HELD = json.dumps(HOLD)
LENGTH = {"finish_reason": "length"}
"""The content of a sound answer, and the end of one that was cut."""


def floods(connection: socket.socket, over: threading.Event) -> None:
    """A body that never ends, as fast as it is read."""
    connection.sendall(OK + b"Connection: close\r\n\r\n")
    while not over.is_set():
        connection.sendall(b" " * 65536)


@contextmanager
def deaf() -> Iterator[str]:
    """The address of a server that takes no connection: its queue is full, and stays so."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        callers = [socket.socket() for _ in range(4)]
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(address)
        try:
            yield f"http://127.0.0.1:{address[1]}"
        finally:
            for caller in callers:
                caller.close()


@contextmanager
def gone() -> Iterator[str]:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    yield f"http://127.0.0.1:{port}"


@dataclass(frozen=True)
class Fault:
    """The behaviour of an upstream at every request, or a server that never gets as far as one."""

    act: Act | None = None
    server: Callable[[], AbstractContextManager[str]] | None = None
    hangs: bool = False


@dataclass
class Faulty:
    """A running faulty upstream, and how many requests it was sent."""

    url: str
    requests: int = 0


@contextmanager
def faulty(fault: Fault, *before: Act, after: Act | None = None) -> Iterator[Faulty]:
    """A server that answers as `before` says, one request after the other, and then with the fault.

    The fault stays, unless there is an answer `after` it. Where it comes before any request it is all there is.
    """
    if fault.act is None:
        assert fault.server is not None
        with fault.server() as url:
            yield Faulty(url)
        return
    server = Faulty("")

    def counted(act: Act) -> Act:
        def counting(connection: socket.socket, over: threading.Event) -> None:
            server.requests += 1
            act(connection, over)

        return counting

    acts = (*before, fault.act) if after is None else (*before, fault.act, after)
    with misbehaving(*map(counted, acts)) as server.url:
        yield server


ABSURD_S = 10**9
HTML = b"<!DOCTYPE html><title>Just a moment</title>"
HUGE = 40 * 1024 * 1024

FAULTS = {
    "takes no connection": Fault(server=deaf, hangs=True),
    "refuses the connection": Fault(server=gone),
    "resets the connection": Fault(reset),
    "never answers": Fault(silent, hangs=True),
    "drips its headers": Fault(drips_its_header, hangs=True),
    "drips its body": Fault(drips_its_body, hangs=True),
    "breaks off in the body": Fault(truncated),
    "sends without end": Fault(floods),
    "sends 40 MiB": Fault(saying(OK + b"Content-Length: %d\r\n\r\n" % HUGE + b" " * HUGE)),
    **{str(status): Fault(answering(status)) for status in (400, 401, 402, 403, 404, 405, 408, 422, 425)},
    "429": Fault(answering(429)),
    "429, retry at once": Fault(answering(429, None, "Retry-After: 0")),
    "429, retry in 30 years": Fault(answering(429, None, f"Retry-After: {ABSURD_S}")),
    **{str(status): Fault(answering(status)) for status in (500, 502, 503, 504, 524)},
    "503, retry in 30 years": Fault(answering(503, HTML, f"Retry-After: {ABSURD_S}")),
    "301 to elsewhere": Fault(answering(301, HTML, "Location: http://127.0.0.1:9/")),
    "HTML with 200": Fault(answering(200, HTML)),
    "nothing with 200": Fault(answering(200, b" ")),
    "half a JSON with 200": Fault(whole(b'{"markets": [{"id": "901", "quest')),
    "an error with 200": Fault(answering(200, {"error": "no such thing"})),
    "a rate limit with 200": Fault(answering(200, {"error": "Too Many Requests"})),
    "a rate limit in other words": Fault(answering(200, {"error": "rate limit exceeded"})),
    "other JSON with 200": Fault(answering(200, b'"all is well"')),
    "bytes that are no text": Fault(answering(200, b'{"\xff\xfe": \x80}')),
    "compressed badly": Fault(answering(200, b"none", "Content-Encoding: gzip")),
    "40 MiB, compressed": Fault(answering(200, gzip.compress(b" " * HUGE), "Content-Encoding: gzip")),
}
