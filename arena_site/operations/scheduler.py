"""The queue's broker, which also runs the scheduler, by the monotonic clock, and survives a database outage.

django-q's guard process, which replaces workers, would sleep until an instant of the wall clock: with that set back by
an hour it would sleep for an hour. Here it sleeps by the monotonic clock, as does the pusher process, which polls the
broker for messages and runs the scheduler.
"""

import logging
import multiprocessing.synchronize
import os
import time
from datetime import datetime
from functools import partial

from django.db import Error
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.queues import Queue
from django_q.scheduler import scheduler

from arena_site import jobs
from arena_site.operations import alert_watch, queue_messages
from arena_site.operations.host_claims import host_refusal
from arena_site.operations.processes import end_with_parent, watch_parent
from arena_site.operations.queue_watch import QueueWatch
from arena_site.operations.worker_heartbeats import WorkerHeartbeat
from foundation import draining
from foundation.database_connection import check_connection
from foundation.services.runs import mark_lost_runs

SCHEDULER_INTERVAL_S = 5
BUSY_PAUSE_S = 0.2

log = logging.getLogger(__name__)


class SchedulerBroker(ORM):
    """django-q's database queue; polling it also enqueues the jobs that are due."""

    scheduled_s: float = -SCHEDULER_INTERVAL_S
    """Last run of the scheduler, on the monotonic clock."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self.heartbeat = WorkerHeartbeat()
        self.taken: dict[int, jobs.Lane] = {}
        """The messages that this cluster's workers have, by id."""
        self.refusal = ""
        """Why this host may not work on the database, as logged last."""
        self.watch: QueueWatch | None = None
        """In the processes of a cluster."""

    def timeout(self, task: object) -> datetime:
        """When a message that was delivered, but that no worker has started, may be delivered to another cluster."""
        return timezone.now() + queue_messages.LOCK

    def ping(self) -> bool:
        """Called in the process that then forks the workers: they learn from its event when the cluster is to stop."""
        arguments = getattr(multiprocessing.current_process(), "_args", ())
        if arguments and isinstance(arguments[0], multiprocessing.synchronize.Event):
            draining.is_stopping = arguments[0].is_set
            arguments[0].wait = partial(_sleep_until_next_look, arguments[0])  # type: ignore[method-assign]
            watch_parent(arguments[0].set)  # the cluster's main process, which may be killed
            os.register_at_fork(after_in_child=end_with_parent)
            self.watch = QueueWatch()
        return bool(super().ping())

    def dequeue(self) -> list[tuple[int, str]] | list[tuple[None, str]] | None:
        """The next message; None, after a pause, where there is none or the database is unreachable."""
        try:
            check_connection()
            self.get_connection()  # a fresh one where the last has died
            if self.is_refused():
                time.sleep(Conf.POLL)
                return None
            if _task_queue() is not None:
                alert_watch.ensure_started()
            if time.monotonic() - self.scheduled_s >= SCHEDULER_INTERVAL_S:
                self.scheduled_s = time.monotonic()
                self.enqueue_due_jobs()
                mark_lost_runs(now=timezone.now())
                queue_messages.drop_abandoned_messages(timezone.now())
                self.heartbeat.beat()
            if self.watch and (probe := self.watch.due_probe()):
                return probe
            if _is_message_waiting_for_a_worker():
                time.sleep(BUSY_PAUSE_S)
                return None
            message = self.take_message()
        except Error as error:  # the pusher would die of it
            log.warning("the queue is unreachable: %s", str(error).partition("\n")[0])
            time.sleep(Conf.POLL)
            return None
        if message is None:
            time.sleep(Conf.POLL)  # spares the processor
            return None
        return [(message.pk, message.payload)]

    def is_refused(self) -> bool:
        """True on a host that does not serve this database: it enqueues, takes and reports nothing until it does."""
        refusal = host_refusal()
        if refusal != self.refusal:
            self.refusal = refusal
            log.warning("%s", refusal or "this host serves the database: the worker begins")
        return bool(refusal)

    def take_message(self) -> OrmQ | None:
        """The oldest message of a lane that has a worker to take, which no other cluster may take then."""
        rows = self.get_connection()
        at_work = set(rows.filter(pk__in=self.taken).values_list("pk", flat=True)) if self.taken else set()
        self.taken = {pk: lane for pk, lane in self.taken.items() if pk in at_work}
        for message in rows.filter(key=self.list_key, lock__lt=timezone.now()).order_by("pk"):
            lane = jobs.lane_of(message.task.get("func", ""))
            if sum(busy_lane <= lane for busy_lane in self.taken.values()) >= lane.most_workers:
                continue
            if rows.filter(pk=message.pk, lock=message.lock).update(lock=self.timeout(message)):
                self.taken[message.pk] = lane
                return message
        return None

    def acknowledge(self, task_id: int) -> None:
        """Deletes a message. One that can not be deleted is delivered again after a day, which does no harm."""
        try:
            super().acknowledge(task_id)
        except Error as error:  # the monitor would die of it
            log.warning("message %s stays in the queue: %s", task_id, str(error).partition("\n")[0])

    def enqueue_due_jobs(self) -> None:
        """Enqueues each job that is due, once however late."""
        for name in jobs.reset_late_schedules(timezone.now()):
            log.warning("the clock was set back: schedule %s was reset to its cron line", name)
        for name in jobs.skip_waiting_schedules(timezone.now()):
            log.info("%s is not enqueued: it still waits for a worker", name)
        scheduler(broker=self)


def _is_message_waiting_for_a_worker() -> bool:
    """True if all workers of this cluster are busy: further messages wait in the database, where others see them.

    A full queue of its own would also block this process, which is the scheduler.
    """
    queue = _task_queue()
    return queue is not None and bool(queue.qsize())


def _sleep_until_next_look(stop: multiprocessing.synchronize.Event, timeout: float) -> bool:
    """The guard's wait between two looks at its processes; returns whether the cluster is to stop."""
    time.sleep(timeout)
    return stop.is_set()


def _task_queue() -> Queue | None:
    """The queue from which the workers take messages, in the process that fills it."""
    arguments = getattr(multiprocessing.current_process(), "_args", ())
    return arguments[0] if arguments and isinstance(arguments[0], Queue) else None
