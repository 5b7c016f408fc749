"""The queue's broker: rings the schedules by the steady clock, and outlives a database that goes away for a while.

django-q's guard would ring them too. But it sleeps until an instant of the wall clock: with that set back by an hour
it sleeps for an hour, and nothing is rung. The pusher, which asks the broker for messages all the time, does not.
"""

import logging
import socket
import time

from django.db import Error
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.scheduler import scheduler

from arena_site import jobs
from arena_site.models import Worker

RING_S = 5
"""How often the schedules are looked at."""
SEEN_S = 30
"""How often a machine that waits at the queue says so."""

log = logging.getLogger(__name__)


class Doorbell(ORM):
    """django-q's queue in the database; whoever waits at it for messages also rings what is due."""

    rung_s: float = -RING_S
    """When the schedules were last looked at, on the steady clock."""
    seen_s: float = -SEEN_S
    """When it was last written down that somebody waits here."""

    def dequeue(self) -> list[tuple[int, str]] | None:
        """The next messages; None, after a pause, where there are none or the database is out of reach."""
        try:
            if time.monotonic() - self.rung_s >= RING_S:
                self.rung_s = time.monotonic()
                self.ring()
                self.be_seen()
            messages: list[tuple[int, str]] | None = super().dequeue()
        except Error as error:  # the pusher would die of it, and only a guard that is awake replaces it
            log.warning("the queue is out of reach: %s", _first_line(error))
            time.sleep(Conf.POLL)
            return None
        return messages

    def acknowledge(self, task_id: int) -> None:
        """Takes a message off; one that can not be taken off is handed out again after a day, which does no harm."""
        try:
            super().acknowledge(task_id)
        except Error as error:  # the monitor would die of it
            log.warning("message %s stays in the queue: %s", task_id, _first_line(error))

    def be_seen(self) -> None:
        """Lets the desk know that a worker is there; one row for each machine, however many wait on it."""
        if time.monotonic() - self.seen_s < SEEN_S:
            return
        self.seen_s = time.monotonic()
        Worker.objects.update_or_create(name=socket.gethostname()[:100], defaults={"seen_at": timezone.now()})

    def ring(self) -> None:
        """Puts a message for each job that is due, once however late."""
        self.get_connection()  # a fresh one where the last has died
        for name in jobs.pull_back(timezone.now()):
            log.warning("the clock was set back: %s rings by it again", name)
        scheduler(broker=self)


def _first_line(error: Error) -> str:
    return str(error).partition("\n")[0]
