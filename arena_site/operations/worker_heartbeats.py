"""Heartbeats of workers: one row for each cluster, and the address of a dead-man service."""

import logging
import os
import threading
import time
from datetime import datetime, timedelta
from http.client import HTTPException
from urllib.request import Request, urlopen

from django.conf import settings
from django.utils import timezone

from arena_site.models import Worker
from foundation.http import USER_AGENT
from foundation.process_names import has_ended, machine, process_name

INTERVAL_S = 10
PING_INTERVAL_S, PING_TIMEOUT_S = 30, 20
STORED_FOR = timedelta(days=1)

log = logging.getLogger(__name__)


class WorkerHeartbeat:
    """The heartbeat of the cluster whose scheduler this process runs."""

    def __init__(self) -> None:
        self.beaten_s = float("-inf")
        self.pinged_s = float("-inf")
        self.ping: threading.Thread | None = None

    def beat(self) -> None:
        """Stores that the cluster is alive, and pings ARENA_HEARTBEAT_URL, where it is time."""
        now_s = time.monotonic()
        if now_s - self.beaten_s >= INTERVAL_S:
            if self.beaten_s == float("-inf"):
                delete_ended_clusters(timezone.now())
            self.beaten_s = now_s
            Worker.objects.update_or_create(name=cluster_name(), defaults={"seen_at": timezone.now()})
        address = settings.ARENA_HEARTBEAT_URL
        if address and now_s - self.pinged_s >= PING_INTERVAL_S and not (self.ping and self.ping.is_alive()):
            self.pinged_s = now_s
            # In a thread: an address that does not answer must not hold up the queue.
            self.ping = threading.Thread(target=ping, args=[address], daemon=True)
            self.ping.start()


def cluster_name() -> str:
    """The machine, and the process that started this one: there may be several clusters on one machine."""
    return process_name(os.getppid())


def delete_ended_clusters(now: datetime) -> None:
    """Deletes the rows of clusters of this machine that ended, and old ones of others."""
    Worker.objects.filter(seen_at__lt=now - STORED_FOR).delete()
    ended_ids = [worker.pk for worker in Worker.objects.filter(name__startswith=machine()) if has_ended(worker.name)]
    Worker.objects.filter(pk__in=ended_ids).delete()


def ping(address: str) -> None:
    """A GET of the dead-man service's address, which is a secret; its failure is harmless."""
    request = Request(address, headers={"User-Agent": USER_AGENT})  # noqa: S310 - http or https, by its setting
    try:
        with urlopen(request, timeout=PING_TIMEOUT_S):  # noqa: S310
            pass
    except (OSError, HTTPException, ValueError) as error:  # no connection, a garbled answer, an address of no host
        log.warning("ARENA_HEARTBEAT_URL could not be reached: %s", type(error).__name__)
