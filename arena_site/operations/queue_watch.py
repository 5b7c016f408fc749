"""A cluster's watch over its own queue: a probe passes it each minute; where one does not come back, the cluster ends.

The processes of a cluster share locks. One that is killed while it holds one (when memory runs out, or by a time limit)
stops the queue for ever, while the cluster's heart beats on. Whoever runs the cluster (`arena`, systemd, Docker) starts
another; messages that no worker has started are delivered again then.
"""

import logging
import os
import signal
import threading
import time
import uuid
from multiprocessing.sharedctypes import RawValue
from typing import Any

from django.db import Error, connection
from django.dispatch import receiver
from django.utils import timezone
from django_q.conf import Conf
from django_q.signals import post_execute
from django_q.signing import SignedPackage

from arena_site.operations.notices import send_notices
from arena_site.operations.processes import PATIENCE_S
from arena_site.operations.queue_messages import queue_state
from foundation.process_names import machine
from foundation.services.alerts import clear_alert, raise_alert

QUEUE_STOPPED = "queue-stopped"
PROBE = f"{__name__}.probe"
INTERVAL_S = 60
LIMIT_S = 120
"""The longest that a probe may take, and the process that fills the queue between two looks for messages."""
LOOK_S = 5
END_S = PATIENCE_S - 5
"""The time for answers that are being awaited, before the cluster is killed; less than its supervisor has patience."""

log = logging.getLogger(__name__)
_passed_s: Any = None
"""When a probe passed last, by the monotonic clock; in memory that all processes of a cluster share."""


def probe() -> None:
    """The job of a probe: to be taken by a worker, and its result by the monitor."""


@receiver(post_execute)
def record_passage(sender: object, task: dict[str, Any], **kwargs: object) -> None:
    """Called in the monitor."""
    if task["func"] == PROBE and _passed_s is not None:
        _passed_s.value = time.monotonic()


class QueueWatch:
    """Made in the process from which all others of the cluster are forked."""

    def __init__(self) -> None:
        global _passed_s
        self.sent_s = self.looked_s = time.monotonic()
        _passed_s = self.passed_s = RawValue("d", self.sent_s)
        self.main_process = os.getppid()
        self.thread: threading.Thread | None = None
        self.is_cleared = False

    def due_probe(self) -> list[tuple[None, str]]:
        """A message to deliver, without a row in the database; none until it is time. Starts the watch."""
        self.looked_s = time.monotonic()
        if self.thread is None:
            self.thread = threading.Thread(target=self._watch, name="queue watch", daemon=True)
            self.thread.start()
        if self.sent_s > self.passed_s.value or self.looked_s - self.sent_s < INTERVAL_S:
            return []
        self.sent_s = time.monotonic()
        message = {"id": uuid.uuid4().hex, "name": "queue probe", "func": PROBE, "args": (), "kwargs": {}}
        return [(None, SignedPackage.dumps(message | {"started": timezone.now(), "save": False}))]

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_S)
            try:
                if reason := self.fault():
                    # No daemon: it has to outlast the loop that delivers messages, which ends with the cluster.
                    threading.Thread(target=self._end, args=[reason], name="end of the cluster", daemon=False).start()
                    return
                if not self.is_cleared and self.passed_s.value > self.sent_s:
                    clear_alert(QUEUE_STOPPED, [machine()], at=timezone.now())
                    self.is_cleared = True
            except Error as error:
                log.info("the queue watch could not look: %s", type(error).__name__)
            finally:
                connection.close()

    def fault(self) -> str:
        """Why the queue counts as stopped; empty where it moves, or while every worker has a job whose heart beats."""
        now_s = time.monotonic()
        if now_s - self.looked_s > LIMIT_S:
            return f"nobody has looked for messages for {now_s - self.looked_s:.0f} seconds"
        silence_s = now_s - self.sent_s
        is_late = self.sent_s > self.passed_s.value and silence_s > LIMIT_S
        if is_late and queue_state(timezone.now()).at_work < Conf.WORKERS:
            return f"a probe has not come back for {silence_s:.0f} seconds"
        return ""

    def _end(self, reason: str) -> None:
        """Says so, and ends the cluster: its workers get a while for the answers that they await."""
        log.error("the queue has stopped: %s; this cluster ends", reason)
        try:
            raise_alert(
                kind=QUEUE_STOPPED,
                items={machine(): machine().rstrip(":")},
                message=f"The queue of the worker on {machine().rstrip(':')} stopped: {reason}. It is started anew.",
                at=timezone.now(),
                path="/admin/#infrastructure",
                remedy="Nothing, if it is resolved within minutes. Else restart the worker, and see in the system's "
                "log what killed its processes: the kernel, for want of memory, or a time limit.",
            )
            send_notices(now=timezone.now(), kinds=[QUEUE_STOPPED])
        finally:
            os.kill(self.main_process, signal.SIGTERM)
            time.sleep(END_S)
            for process in (self.main_process, os.getppid()):
                os.kill(process, signal.SIGKILL)
