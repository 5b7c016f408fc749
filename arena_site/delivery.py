"""How answers travel: the API's from any origin and only when they are new, all without a secret compressed."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus

from django.contrib.admin.models import LogEntry
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import http_date

from cohorts.weeks import week_start
from markets.fields import instant
from markets.models import Run

API = "/api/"
ROWS = "/api/v1/"
READS = ("GET", "HEAD")
ADMIN = "/admin/"
SUBMISSIONS = "/api/v1/submissions/"

STARTED = timezone.now()
"""Another version of the code may show the same rows in another form."""
NEWEST_RUNS = 200
"""More than are started while the longest runs."""
SECOND = timedelta(seconds=1)


class Compression(GZipMiddleware):
    """gzip for answers that hold no secret: none of the admin's, none that depends on a cookie or sets one.

    Where a page repeats what was asked beside a secret, the compressed length gives the secret away (BREACH).
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # type: ignore[override]
        varies = response.get("Vary", "").lower()
        if request.path_info.startswith(ADMIN) or "cookie" in varies or response.cookies:
            return response
        return super().process_response(request, response)  # type: ignore[arg-type]


class ApiReads:
    """Lets any origin read the API, tells each answer's version and time, and answers 304 to who has it already."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # What an agent is shown is for it alone, and true for minutes: nobody's to keep, no other origin's to read.
        if not request.path_info.startswith(API) or request.path_info.startswith(SUBMISSIONS):
            return self.get_response(request)
        response = self._preflight(request) or self._answer(request)
        response["Access-Control-Allow-Origin"] = "*"
        response["Access-Control-Expose-Headers"] = "ETag, Last-Modified, Link, Retry-After"
        return response

    @staticmethod
    def _preflight(request: HttpRequest) -> HttpResponse | None:
        """What a browser asks before it reads with headers of its own; None if this is no such question."""
        if request.method != "OPTIONS" or "HTTP_ACCESS_CONTROL_REQUEST_METHOD" not in request.META:
            return None
        return HttpResponse(
            status=HTTPStatus.NO_CONTENT,
            headers={
                "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
                "Access-Control-Allow-Headers": "Accept, If-None-Match, If-Modified-Since",
                "Access-Control-Max-Age": "86400",
            },
        )

    def _answer(self, request: HttpRequest) -> HttpResponse:
        reads = request.method in READS
        # Asked before the rows are read: what changes in between makes the answer newer than it says, never older.
        changed = last_change(timezone.now()) if reads and request.path_info.startswith(ROWS) else None
        response = self.get_response(request)
        if not reads or response.status_code != HTTPStatus.OK or response.streaming:
            return response
        etag = f'W/"{hashlib.sha256(response.content).hexdigest()[:32]}"'
        response["ETag"] = etag
        # Kept by whoever likes, but asked for again each time: without this, a browser guesses for how long it may not.
        response["Cache-Control"] = "no-cache"
        since = None
        if changed is not None:
            response["Last-Modified"] = http_date(changed.timestamp())
            since = int(changed.timestamp())
        return get_conditional_response(request, etag, since, response) or response


def last_change(now: datetime) -> datetime | None:
    """The last instant at which anything may have changed that the API shows; None while something is changing.

    Rows change by runs, by the admin, and with the week, whose number is shown. Given in whole seconds, rounded up, and
    only once that second has begun: two changes within one second must not look like one.
    """
    try:
        running, finished, acted = _runs_and_acts(now - Run.LONGEST)
    except DatabaseError:
        return None
    if running:
        return None
    latest = max(filter(None, [finished, acted, STARTED, week_start(now)]))
    whole = latest.replace(microsecond=0) + SECOND
    return whole if whole <= now else None


def _runs_and_acts(since: datetime) -> tuple[int, datetime | None, datetime | None]:
    """How many runs started since then are at work; when the last one ended; when somebody last acted in the admin.

    By hand: every answer asks, and to have this written anew each time would be a tenth of what an answer takes.
    """
    runs, acts = Run._meta.db_table, LogEntry._meta.db_table
    sql = (
        "SELECT SUM(CASE WHEN status = %s AND started_at > %s THEN 1 ELSE 0 END), MAX(finished_at), "  # noqa: S608
        f"(SELECT action_time FROM {acts} ORDER BY id DESC LIMIT 1) "
        f"FROM (SELECT status, started_at, finished_at FROM {runs} ORDER BY id DESC LIMIT {NEWEST_RUNS}) newest"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [Run.Status.RUNNING, connection.ops.adapt_datetimefield_value(since)])
        running, finished, acted = cursor.fetchone()
    return running or 0, instant(finished), instant(acted)
