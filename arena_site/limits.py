"""So much per client and no more: counted in the database, so that all processes on all machines count together."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import F
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from arena_site.clients import client_key
from arena_site.models import Tally

log = logging.getLogger(__name__)
MINUTE = 60
SHARE = 16
"""A process takes this part of what is left, so that counting costs a write for many requests and not for each."""
SQLITE_PATIENCE_MS = 100
"""A reader of the API never waits longer than this for a job that holds SQLite's one write lock."""


def window_end(now: float, seconds: int) -> int:
    """The end of the window of so many seconds that holds an instant."""
    return (int(now) // seconds + 1) * seconds


def count(thing: str, client: str, number: int, *, ends: int) -> int:
    """Adds `number` to a client's tally of a thing in the window that ends at `ends`; gives the new count.

    One statement, so that no two processes can count on top of the same number. A client's first forgets old windows.
    """
    table = connection.ops.quote_name(Tally._meta.db_table)
    sql = (
        f"INSERT INTO {table} (thing, client, ends, count) VALUES (%s, %s, %s, %s) "  # noqa: S608 - a table's name
        f"ON CONFLICT (thing, client, ends) DO UPDATE SET count = {table}.count + excluded.count RETURNING count"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [thing, client, ends, number])
        counted = int(cursor.fetchone()[0])
    if counted == number:
        Tally.objects.filter(thing=thing, ends__lt=ends).delete()
    return counted


@dataclass(slots=True)
class _Allowance:
    """What a process may still grant a client in a window; `left` of the limit when it last asked."""

    granted: int = 0
    left: int = 0


@dataclass
class SharedLimit:
    """At most so many per client and window over all processes; a process takes a part of them at a time.

    What a process took and nobody used is lost to the client until the window ends; the parts shrink as the rest does.
    Who takes waits for SQLite's write lock no longer than a reader may.
    """

    thing: str
    seconds: int
    _ends: int = 0
    _clients: dict[str, _Allowance] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, client: str, most: int, *, now: float) -> float | None:
        """None if the client may go on, else how many seconds it has to wait."""
        ends = window_end(now, self.seconds)
        with self._lock:
            if self._ends != ends:
                self._ends = ends
                self._clients.clear()
            allowance = self._clients.setdefault(client, _Allowance(left=most))
            if allowance.granted:
                allowance.granted -= 1
                return None
            if not allowance.left:
                return ends - now
            number = max(1, allowance.left // SHARE)
        with briefly():
            before = count(self.thing, client, number, ends=ends) - number
        with self._lock:
            granted = max(0, min(number, most - before))
            allowance.left = max(0, most - before - number)
            allowance.granted += granted - 1 if granted else 0
        return None if granted else ends - now


API = SharedLimit("api", MINUTE)


class PerClient(BaseThrottle):
    """ARENA_API_RATE requests a minute for each client; 0 is no limit."""

    def allow_request(self, request: Request, view: object) -> bool:
        self.seconds: float | None = None
        if most := settings.ARENA_API_RATE:
            try:
                self.seconds = API.take(client_key(request.META), most, now=time.time())
            except DatabaseError as error:
                # To count is no reason to refuse: who reads waits for no writer.
                log.warning("an API request was not counted: %s", error)
        return self.seconds is None

    def wait(self) -> float | None:
        return self.seconds


@contextmanager
def briefly() -> Iterator[None]:
    """Inside, SQLite gives up on its write lock at once instead of after half a minute. PostgreSQL locks rows."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (usual,) = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {SQLITE_PATIENCE_MS}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {usual}")


def give_back(thing: str, client: str, *, ends: int) -> None:
    """Takes one off a client's tally: what was counted beforehand did not happen."""
    Tally.objects.filter(thing=thing, client=client, ends=ends, count__gt=0).update(count=F("count") - 1)
