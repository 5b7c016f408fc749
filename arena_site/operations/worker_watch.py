"""The web processes' watch over the workers: it raises and sends the alert that no worker can send itself."""

import logging
import os
import threading
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import Error, connection
from django.utils import timezone

from arena_site.models import Worker
from arena_site.operations.host_claims import host_refusal
from arena_site.operations.notices import send_notices
from arena_site.operations.queue_messages import drop_abandoned_messages
from foundation.database_connection import check_connection
from foundation.services.alerts import clear_alert, raise_alert
from foundation.services.runs import mark_lost_runs

NO_WORKER = "no-worker"
REMEDY = "Start it again: systemctl restart arena-worker, docker compose up -d worker, or manage.py qcluster."
INTERVAL_S = 15

log = logging.getLogger(__name__)
_looking = threading.Lock()
"""Held during a look: a process is forked between two, never while a lock of the database's driver is held."""


def watch_workers() -> None:
    """Starts the watch in this process, and in each that it forks (a preloaded server's)."""
    if settings.ARENA_DEMO:  # which has no worker
        return
    os.register_at_fork(before=_looking.acquire, after_in_parent=_looking.release, after_in_child=_start_after_fork)
    _start()


def _start_after_fork() -> None:
    _looking.release()
    _start()


def _start() -> None:
    start_watch("worker watch", partial(check_workers, since=timezone.now()))


def start_watch(name: str, look: Callable[..., object]) -> None:
    """Starts a thread that calls `look` every INTERVAL_S on a host that serves the database; no error ends it."""
    threading.Thread(target=_watch, args=[name, look], name=name, daemon=True).start()


def _watch(name: str, look: Callable[..., object]) -> None:
    while True:
        time.sleep(INTERVAL_S)
        with _looking:
            try:
                check_connection()
                if not host_refusal():
                    look(now=timezone.now())
            except Error as error:
                log.info("the %s could not look: %s", name, error)
            except Exception:
                log.exception("the %s failed", name)
            finally:
                connection.close()


def check_workers(*, now: datetime, since: datetime) -> bool:
    """Raises, clears and sends the alert about workers; True if one is alive.

    `since` is when this process began to look: a worker that has never been seen gets as long to start. Any number of
    processes may do this at once: there is one open alert, and each notice is claimed before it is sent.
    """
    mark_lost_runs(now=now)
    drop_abandoned_messages(now)
    last = Worker.objects.order_by("-seen_at").first()
    if last is not None and last.is_alive(now):
        clear_alert(NO_WORKER, [NO_WORKER], at=now)
        send_notices(now=now, kinds=[NO_WORKER])
        return True
    if now - since < Worker.LOST_AFTER:
        return False
    absence = f"since {last.seen_at:%Y-%m-%d %H:%M:%S} UTC, on {last.name}" if last else "yet"
    raise_alert(
        kind=NO_WORKER,
        subject="workers",
        items={NO_WORKER: last.name if last else "no worker"},
        message=f"No worker has been seen {absence}: no job runs, and no decision is asked for.",
        at=now,
        path="/admin/",
        remedy=REMEDY,
    )
    send_notices(now=now)  # no worker will
    return False
