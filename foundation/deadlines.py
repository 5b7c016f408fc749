"""An httpx transport with a total deadline for each request."""

import threading
import time
from collections.abc import Iterable
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from foundation import draining, heartbeats

PIECE_S = 1.0


class Deadline(threading.local):
    """The instant by which this thread's request must be complete."""

    at = float("inf")

    def set(self, at: float) -> None:
        self.at = at

    def left(self, timeout: float | None, expired: type[Exception]) -> float:
        seconds = min(self.at - time.monotonic(), draining.grace_left_s())
        if seconds <= 0:
            raise expired("the request's deadline has passed")
        return seconds if timeout is None else min(seconds, timeout)


class _DeadlinedStream(httpcore.NetworkStream):
    """A connection whose reads and writes end at the request's deadline.

    The timeouts of httpx start again with each byte, so a response that arrives byte by byte would never time out.
    """

    def __init__(self, stream: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes. A model may think for minutes: the wait is cut into pieces, so that its run's heart beats.

        A process that was asked to stop learns of it between two of them.
        """
        waited = 0.0
        while True:
            seconds = self._deadline.left(None if timeout is None else timeout - waited, httpcore.ReadTimeout)
            piece = min(seconds, PIECE_S)
            try:
                return self._stream.read(max_bytes, piece)
            except httpcore.ReadTimeout:
                if piece == seconds:
                    raise
            waited += piece
            heartbeats.beat()

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._deadline.left(timeout, httpcore.WriteTimeout))

    def start_tls(self, ssl_context: Any, server_hostname: Any = None, timeout: Any = None) -> Any:
        seconds = self._deadline.left(timeout, httpcore.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, seconds)
        return _DeadlinedStream(stream, self._deadline)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class _DeadlinedBackend(httpcore.SyncBackend):
    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        seconds = self._deadline.left(timeout, httpcore.ConnectTimeout)
        stream = super().connect_tcp(host, port, seconds, local_address, socket_options)
        return _DeadlinedStream(stream, self._deadline)


class DeadlinedTransport(httpx.HTTPTransport):
    """An httpx transport that obeys the deadline and uses the proxy named by the environment, if any.

    It does not call `HTTPTransport.__init__`, which only builds a pool and takes no network backend.
    """

    def __init__(self, url: httpx.URL, deadline: Deadline) -> None:
        address = None if proxy_bypass(url.host) else getproxies().get(url.scheme)
        proxy = httpx.Proxy(address) if address else None
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context() if url.scheme == "https" else None,
            proxy=httpcore.Proxy(str(proxy.url), auth=proxy.raw_auth) if proxy else None,
            keepalive_expiry=5.0,
            network_backend=_DeadlinedBackend(deadline),
        )
