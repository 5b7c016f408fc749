"""Upstreams that misbehave: each fault as what a server does with a request, and a server that does nothing else."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.foundation.test_http import (
    OK,
    Act,
    drips_its_body,
    drips_its_header,
    misbehaving,
    reset,
    saying,
    silent,
    truncated,
    whole,
)

TINY_TIMEOUT_S, TIMEOUT_S = 0.15, 5
"""How long an upstream may take: one that hangs is given up at once, any other must not fail for being slow."""


def answering(status: int, body: Any = None, *headers: str) -> Act:
    """A complete answer; what is not bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body or {"error": f"scripted {status}"}).encode()
    head = [f"HTTP/1.1 {status} Scripted", f"Content-Length: {len(content)}", "Connection: close", *headers]
    return saying("\r\n".join(head).encode() + b"\r\n\r\n" + content)


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
def faulty(fault: Fault, *before: Act) -> Iterator[Faulty]:
    """A server that answers as `before` says, one request after the other, and with the fault from then on.

    Where the fault comes before any request it is all there is.
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

    with misbehaving(*map(counted, (*before, fault.act))) as server.url:
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
    **{str(status): Fault(answering(status)) for status in (400, 401, 402, 403, 404, 408, 422)},
    "429": Fault(answering(429)),
    "429, retry at once": Fault(answering(429, None, "Retry-After: 0")),
    "429, retry in 30 years": Fault(answering(429, None, f"Retry-After: {ABSURD_S}")),
    **{str(status): Fault(answering(status)) for status in (500, 502, 503, 504)},
    "503, retry in 30 years": Fault(answering(503, HTML, f"Retry-After: {ABSURD_S}")),
    "301 to elsewhere": Fault(answering(301, HTML, "Location: http://127.0.0.1:9/")),
    "HTML with 200": Fault(answering(200, HTML)),
    "nothing with 200": Fault(answering(200, b" ")),
    "half a JSON with 200": Fault(whole(b'{"markets": [{"id": "901", "quest')),
    "an error with 200": Fault(answering(200, {"error": "no such thing"})),
    "a rate limit with 200": Fault(answering(200, {"error": "Too Many Requests"})),
    "other JSON with 200": Fault(answering(200, b'"all is well"')),
    "bytes that are no text": Fault(answering(200, b'{"\xff\xfe": \x80}')),
}
