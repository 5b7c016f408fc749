"""A gunicorn worker that buffers, so that a slow client holds a connection and never a thread.

gunicorn starts, watches and replaces the processes; waitress reads requests and writes responses in its loop, and hands
only whole requests to the threads.
"""

import os
import time
from typing import Any

from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import create_server

CONNECTIONS = 900
"""Of one process, whose limit of open files is 1024 on most systems."""
IDLE_S = 30
"""A connection on which nothing moves is closed after this time, within a request too."""
LARGEST_REQUEST = 2_621_440
"""Bytes, as many as Django reads into memory."""
UNREAD = 2**30
"""Bytes of responses that wait for a client before a thread waits too: files count, though they are not copied."""
LOOP_S = 1.0


class BufferingWorker(Worker):
    """Serves with `threads` threads, out of the reach of half-sent requests and of readers that read slowly."""

    def run(self) -> None:
        connections: dict[int, Any] = {}
        server = create_server(
            self.wsgi,
            map=connections,
            sockets=[listener.sock for listener in self.sockets],
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
        while self.alive and self.ppid == os.getppid():
            self.notify()
            wasyncore.loop(timeout=LOOP_S, use_poll=True, map=connections, count=1)
        self._finish(connections)
        server.task_dispatcher.shutdown()
        wasyncore.close_all(connections)

    def _finish(self, connections: dict[int, Any]) -> None:
        """Accepts nothing more, and answers the requests that have come whole."""
        for listener in connections.values():
            listener.accepting = False
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while any(map(_is_answering, list(connections.values()))) and time.monotonic() < deadline:
            self.notify()
            wasyncore.loop(timeout=LOOP_S, use_poll=True, map=connections, count=1)


def _is_answering(connection: Any) -> bool:
    return isinstance(connection, HTTPChannel) and bool(connection.requests or connection.total_outbufs_len)
