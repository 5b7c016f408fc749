"""The worker's watch over alerts: a thread beside the queue, so that none waits for a job that waits for others."""

import logging
import threading
from datetime import datetime

from arena_site.operations.conditions import refresh_conditions
from arena_site.operations.notices import send_notices
from arena_site.operations.worker_watch import start_watch
from markets.services.venue_health import refresh_stale_prices

NAME = "alert watch"

log = logging.getLogger(__name__)


def ensure_started() -> None:
    """Starts the watch in this process unless it runs."""
    if not any(thread.name == NAME for thread in threading.enumerate()):
        start_watch(NAME, watch_alerts)


def watch_alerts(*, now: datetime) -> None:
    """Raises and clears what only time tells, and sends what is due."""
    refresh_stale_prices(at=now)
    refresh_conditions(now=now)
    _, failures = send_notices(now=now)
    for failure in failures:
        log.warning("%s", failure)
