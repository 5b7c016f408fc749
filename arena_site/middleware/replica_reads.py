"""Reads of pages and the API from a replica of the database, where DATABASE_REPLICA_URL names one.

For the duration of a safe request its thread's default connection is the replica's: whatever reads rows, by the ORM or
by hand-written SQL, reads them there, and so do the versions that cached responses are keyed by. A replica may be
behind, so all that decides anything stays with the primary: commands, jobs, the admin, claims and submissions of
external agents, rate limits, and what monitors ask.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.core.exceptions import MiddlewareNotUsed
from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponse

from arena_site.middleware import ADMIN, PROBES, READS, SUBMISSIONS

REPLICA = "replica"
"""The alias of its connections."""
FROM_PRIMARY = (ADMIN, SUBMISSIONS, *PROBES)
"""Beginnings of the addresses whose answers somebody acts on."""


class ReplicaReads:
    """Middleware that lets safe requests read from the replica."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if REPLICA not in connections.settings:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in READS or request.path_info.startswith(FROM_PRIMARY):
            return self.get_response(request)
        with reading_from_replica():
            return self.get_response(request)


@contextmanager
def reading_from_replica() -> Iterator[None]:
    """Makes the replica's connection this thread's default one while the block runs."""
    primary = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connections[REPLICA]
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = primary
