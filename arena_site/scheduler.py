"""The queue's broker, which also runs the scheduler, by the monotonic clock, and survives a database outage.

django-q's guard process would run the scheduler too, but it sleeps until an instant of the wall clock: with that set
back by an hour it sleeps for an hour. The pusher process, which polls the broker for messages, does not.
"""

import logging
import multiprocessing.synchronize
import socket
import time

from django.db import Error
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.scheduler import scheduler

from agents.services import answer_storage
from arena_site import jobs
from arena_site.models import Worker

SCHEDULER_INTERVAL_S = 5
HEARTBEAT_INTERVAL_S = 30

log = logging.getLogger(__name__)


class SchedulerBroker(ORM):
    """django-q's database queue; polling it also enqueues the jobs that are due."""

    scheduled_s: float = -SCHEDULER_INTERVAL_S
    """Last run of the scheduler, on the monotonic clock."""
    heartbeat_s: float = -HEARTBEAT_INTERVAL_S
    """Last heartbeat, on the monotonic clock."""

    def ping(self) -> bool:
        """Called in the process that then forks the workers: they learn from its event when the cluster is to stop."""
        arguments = getattr(multiprocessing.current_process(), "_args", ())
        if arguments and isinstance(arguments[0], multiprocessing.synchronize.Event):
            answer_storage.is_stopping = arguments[0].is_set
        return bool(super().ping())

    def dequeue(self) -> list[tuple[int, str]] | None:
        """The next messages; None, after a pause, where there are none or the database is unreachable."""
        try:
            if time.monotonic() - self.scheduled_s >= SCHEDULER_INTERVAL_S:
                self.scheduled_s = time.monotonic()
                self.enqueue_due_jobs()
                self.record_heartbeat()
            messages: list[tuple[int, str]] | None = super().dequeue()
        except Error as error:  # the pusher would die of it, and only a guard that is awake replaces it
            log.warning("the queue is unreachable: %s", _first_line(error))
            time.sleep(Conf.POLL)
            return None
        return messages

    def acknowledge(self, task_id: int) -> None:
        """Deletes a message. One that can not be deleted is delivered again after a day, which does no harm."""
        try:
            super().acknowledge(task_id)
        except Error as error:  # the monitor would die of it
            log.warning("message %s stays in the queue: %s", task_id, _first_line(error))

    def record_heartbeat(self) -> None:
        """Stores that a worker is alive: one row for each machine, however many processes poll there."""
        if time.monotonic() - self.heartbeat_s < HEARTBEAT_INTERVAL_S:
            return
        self.heartbeat_s = time.monotonic()
        Worker.objects.update_or_create(name=socket.gethostname()[:100], defaults={"seen_at": timezone.now()})

    def enqueue_due_jobs(self) -> None:
        """Enqueues each job that is due, once however late."""
        self.get_connection()  # a fresh one where the last has died
        for name in jobs.reset_late_schedules(timezone.now()):
            log.warning("the clock was set back: schedule %s was reset to its cron line", name)
        scheduler(broker=self)


def _first_line(error: Error) -> str:
    return str(error).partition("\n")[0]
