"""A gunicorn worker that buffers, so that a slow client holds a connection and never a thread.

gunicorn starts, watches and replaces the processes; waitress reads requests and writes responses in its loop, and hands
only whole requests to the threads.
"""

import os
import re
import time
from operator import attrgetter
from typing import Any

from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import BaseWSGIServer, create_server
from waitress.task import ErrorTask

API_REQUEST = re.compile(rb"\s*\S+\s+(?:[a-z][a-z0-9+.-]*://[^/\s]*)?/+api/", re.IGNORECASE)
"""The beginning of a request for the API, by a path or a whole address."""
CONNECTIONS = 900
"""Of one process, whose limit of open files is 1024 on most systems."""
IDLE_S = 30
"""A connection on which nothing moves is closed after this time, within a request too."""
LARGEST_REQUEST = 2_621_440
"""Bytes, as many as Django reads into memory."""
UNREAD = 2**30
"""Bytes of responses that wait for a client before a thread waits too: files count, though they are not copied."""
LOOP_S = 1.0


class UnambiguousRequestParser(HTTPRequestParser):
    """Refuses requests that this server and one before it might understand differently."""

    def parse_header(self, header_plus: bytes) -> None:
        super().parse_header(header_plus)
        if "CONTENT_LENGTH" in self.headers and (self.chunked or "TRANSFER_ENCODING" in self.headers):
            raise ParsingError("Content-Length and Transfer-Encoding exclude each other")
        if "," in self.headers.get("HOST", ""):
            raise ParsingError("Host must be given once")


class RefusalTask(ErrorTask):
    """The answer to a request that can not be read: problem details under /api/, a page elsewhere."""

    def execute(self) -> None:
        # This module is loaded before the settings.
        from django.template.loader import render_to_string

        from foundation.rest.problems import PROBLEM_TYPE, Problem

        error = self.request.error
        # Of headers that are too long the parser knows the bytes alone.
        if API_REQUEST.match(self.request.header_plus or getattr(self.request, "first_line", b"")):
            content, content_type = Problem(error.code, error.body).content, PROBLEM_TYPE
        else:
            texts = {"title": error.reason, "heading": error.reason, "text": f"{error.body}."}
            content, content_type = render_to_string("error.html", texts).encode(), "text/html; charset=utf-8"
        self.status = f"{error.code} {error.reason}"
        self.response_headers.append(("Content-Type", content_type))
        self.set_close_on_finish()
        self.content_length = len(content)
        self.write(content)


class Channel(HTTPChannel):
    """A client's connection."""

    parser_class = UnambiguousRequestParser
    error_task_class = RefusalTask


class BufferingWorker(Worker):
    """Serves with `threads` threads, out of the reach of half-sent requests and of readers that read slowly."""

    def run(self) -> None:
        connections: dict[int, Any] = {}
        server = create_server(
            self.wsgi,
            map=connections,
            sockets=list(map(attrgetter("sock"), self.sockets)),
            threads=self.cfg.threads,
            connection_limit=CONNECTIONS,
            channel_timeout=IDLE_S,
            cleanup_interval=IDLE_S // 3,
            outbuf_high_watermark=UNREAD,
            max_request_body_size=LARGEST_REQUEST,
            asyncore_use_poll=True,
            clear_untrusted_proxy_headers=False,  # the site believes them from ARENA_TRUSTED_PROXIES alone
            ident=None,
        )
        for listener in connections.values():
            if isinstance(listener, BaseWSGIServer):
                listener.channel_class = Channel
        while self.alive and self.ppid == os.getppid():
            self.notify()
            wasyncore.loop(timeout=LOOP_S, use_poll=True, map=connections, count=1)
        self._finish(connections)
        server.task_dispatcher.shutdown()
        wasyncore.close_all(connections)

    def _finish(self, connections: dict[int, Any]) -> None:
        """Accepts nothing more, and answers the requests that have come whole."""
        from foundation.rest import long_poll  # as above, after the settings

        long_poll.stopping.set()
        for listener in connections.values():
            listener.accepting = False
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while any(map(_is_answering, list(connections.values()))) and time.monotonic() < deadline:
            self.notify()
            wasyncore.loop(timeout=LOOP_S, use_poll=True, map=connections, count=1)


def _is_answering(connection: Any) -> bool:
    return isinstance(connection, HTTPChannel) and bool(connection.requests or connection.total_outbufs_len)
