"""Messages of the queue while a job works on them: a worker that is killed leaves none that looks at work.

A message that waits has the cluster's key. A worker that starts its job gives it another key, so that nobody delivers
it again, and extends its lock with each heartbeat; the lock of a dead worker's message ends after a minute.
"""

import logging
import os
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db import Error
from django.db.models import Count, Min, Q, QuerySet
from django.dispatch import receiver
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.signals import post_execute_in_worker, post_spawn, pre_execute

from arena_site.operations.processes import end_with_parent, watch_parent
from foundation.heartbeats import heartbeat

LOCK = timedelta(seconds=60)
STARTED = f"{Conf.PREFIX}:started"
"""The key of messages that a job works on."""

log = logging.getLogger(__name__)
_job = ExitStack()
_idle = threading.Event()
"""Set while this worker has no job."""
_idle.set()


@dataclass(frozen=True, slots=True)
class QueueState:
    """The numbers of messages that wait and that are at work, and the age of the oldest that waits."""

    depth: int
    oldest_age_s: float
    at_work: int


def messages(now: datetime) -> QuerySet[OrmQ]:
    """Messages that wait or are at work, without those of dead workers."""
    return OrmQ.objects.exclude(key=STARTED, lock__lte=now)


def queue_state(now: datetime) -> QueueState:
    at_work = Q(key=STARTED)
    figures = messages(now).aggregate(
        depth=Count("pk", filter=~at_work), at_work=Count("pk", filter=at_work), oldest=Min("lock", filter=~at_work)
    )
    age = max(0.0, (now - figures["oldest"]).total_seconds()) if figures["oldest"] else 0.0
    return QueueState(figures["depth"], age, figures["at_work"])


def drop_abandoned_messages(now: datetime) -> int:
    """Deletes messages whose worker is dead: the next run of their job does what is still to be done."""
    return OrmQ.objects.filter(key=STARTED, lock__lte=now).delete()[0]


def _extend(message: int) -> None:
    OrmQ.objects.filter(pk=message, key=STARTED).update(lock=timezone.now() + LOCK)


@receiver(pre_execute)
def start_message(sender: object, task: dict[str, Any], **kwargs: object) -> None:
    """Marks a message as at work, and lets its job's heart beat."""
    _idle.clear()
    message = task.get("ack_id")
    if message is None:
        return
    _job.close()  # of a job that was interrupted before its end was signalled
    try:
        OrmQ.objects.filter(pk=message).update(key=STARTED, lock=timezone.now() + LOCK)
    except Error as error:  # the worker would die of it; the job itself finds out whether the database is back
        log.warning("message %s can not be marked as started: %s", message, error)
    _job.enter_context(heartbeat(partial(_extend, message)))


@receiver(post_execute_in_worker)
def end_message(sender: object, **kwargs: object) -> None:
    _job.close()
    _idle.set()


@receiver(post_spawn)
def end_with_cluster(sender: object, **kwargs: object) -> None:
    """Lets a worker whose cluster was killed end after its job: an answer that it waits for is paid."""
    end_with_parent(0)
    watch_parent(_end_when_idle)


def _end_when_idle() -> None:
    _idle.wait()
    os._exit(1)  # the thread that waits for a job can not be woken
