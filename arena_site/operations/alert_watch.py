"""The worker's watch over alerts: a thread beside the queue, so that none waits for a job that waits for others."""

import logging
import threading
import time
from datetime import datetime
from operator import attrgetter

from django.db import Error, connection
from django.utils import timezone

from agents.services.signing_keys import refresh_signing_key_alert
from arena_site.middleware.outages import check_connection
from arena_site.operations.host_claims import host_refusal
from arena_site.operations.notices import send_notices
from arena_site.operations.resource_alerts import refresh_resource_alerts
from markets.services.venue_health import refresh_stale_prices

INTERVAL_S = 15
NAME = "alert watch"

log = logging.getLogger(__name__)


def is_running() -> bool:
    return NAME in map(attrgetter("name"), threading.enumerate())


def start() -> None:
    threading.Thread(target=_watch, name=NAME, daemon=True).start()


def watch_alerts(*, now: datetime) -> None:
    """Raises and clears what only time tells, and sends what is due."""
    refresh_stale_prices(at=now)
    refresh_resource_alerts(now=now)
    refresh_signing_key_alert(now=now)
    _, failures = send_notices(now=now)
    for failure in failures:
        log.warning("%s", failure)


def _watch() -> None:
    while True:
        try:
            check_connection()
            if not host_refusal():
                watch_alerts(now=timezone.now())
        except Error as error:
            log.info("the alerts could not be looked at: %s", error)
        except Exception:
            log.exception("the watch over the alerts failed")
        finally:
            connection.close()
        time.sleep(INTERVAL_S)
