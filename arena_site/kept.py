"""Answers kept as they were sent, for as long as nothing they rest on has changed.

Every process keeps its own. What was made under the tokens that hold now is sent again as it is; the tokens are read
for each request, and the database renews them with the change itself (`scoring.revisions`), so no answer is ever older
than what a reader could have read.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from threading import Lock
from typing import Any

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.utils.http import parse_http_date_safe

from arena_site.limits import PerClient
from cohorts.models import Cohort
from scoring.models import Snapshot
from scoring.revisions import BOARDS, PLAYERS, SNAPSHOTS, tokens

BOARD, CURVES = "/api/v1/leaderboard/", "/api/v1/performance/"
RESTS_ON = {
    BOARD: ((BOARDS,), {"protocol", "methodology", "arm", "fields", "page", "page_size"}),
    CURVES: ((PLAYERS, SNAPSHOTS), {"range", "cohort", "family"}),
}
"""By path: the things that an answer rests on, and the parameters with which it rests on nothing else."""
MOST = 200
"""Answers that a process keeps; the one that was not asked for the longest gives way."""
CONDITIONS = ("HTTP_IF_NONE_MATCH", "HTTP_IF_MODIFIED_SINCE")
ACROSS = ("Access-Control-Allow-Origin", "Access-Control-Expose-Headers")


@dataclass(frozen=True, slots=True)
class _Kept:
    tokens: tuple[str, ...]
    content: bytes
    headers: dict[str, str]


class KeptAnswers:
    """Sends the board and the curves again as they were made, until a score, a snapshot or a player changes."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._kept: OrderedDict[tuple[str, ...], _Kept] = OrderedDict()
        self._lock = Lock()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        rests_on = _rests_on(request)
        if rests_on is None:
            return self.get_response(request)
        # Read before the answer is made: what changes in between is then kept under tokens that no longer hold.
        now = _tokens(rests_on)
        key = (request.path_info, request.META.get("QUERY_STRING", ""), str(request.scheme), request.get_host())
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        if now is not None and kept is not None and kept.tokens == now and _may(request):
            return _again(request, kept)
        made = self._made(request)
        if now is None or made.status_code != HTTPStatus.OK or made.streaming or made.cookies or not _lasts(request):
            return made if made.status_code != HTTPStatus.OK or made.streaming else _again(request, _as_sent((), made))
        self._keep(key, kept := _as_sent(now, made))
        return _again(request, kept)

    def _made(self, request: HttpRequest) -> HttpResponse:
        """The whole answer, also for who has it already: the next one may not."""
        conditions = {name: request.META.pop(name) for name in CONDITIONS if name in request.META}
        try:
            return self.get_response(request)
        finally:
            request.META.update(conditions)

    def _keep(self, key: tuple[str, ...], kept: _Kept) -> None:
        with self._lock:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > MOST:
                self._kept.popitem(last=False)


def _rests_on(request: HttpRequest) -> tuple[str, ...] | None:
    """The things that the answer rests on; None where it is not to be kept."""
    found = RESTS_ON.get(request.path_info)
    if found is None or request.method != "GET" or not request.GET.keys() <= found[1]:
        return None
    return found[0]


def _tokens(things: tuple[str, ...]) -> tuple[str, ...] | None:
    try:
        now = tokens()
    except DatabaseError:  # whoever makes the answer says what is wrong
        return None
    return tuple(now[thing] for thing in things) if now.keys() >= set(things) else None


def _may(request: HttpRequest) -> bool:
    """Is the client within its limit? If not, the way that makes answers tells it so, and counts it not twice."""
    return bool(PerClient().allow_request(request, None))  # type: ignore[arg-type]


def _lasts(request: HttpRequest) -> bool:
    """Will time alone change nothing? It would, once it reaches what was recorded for an instant yet to come."""
    if request.path_info != CURVES:
        return True
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    snapshot, cohort = Snapshot._meta.db_table, Cohort._meta.db_table
    with connection.cursor() as cursor:
        # By the latest of each: PostgreSQL, taking a third of all rows for later than now, would go through them.
        cursor.execute(
            f"SELECT (SELECT MAX(taken_at) FROM {snapshot}) > %s, (SELECT MAX(started_at) FROM {cohort}) > %s",  # noqa: S608
            [now, now],
        )
        return not any(cursor.fetchone())


def _as_sent(now: tuple[str, ...], response: HttpResponse) -> _Kept:
    return _Kept(now, response.content, dict(response.items()))


def _again(request: HttpRequest, kept: _Kept) -> HttpResponse:
    response = HttpResponse(kept.content, headers=kept.headers)
    since = parse_http_date_safe(kept.headers["Last-Modified"]) if "Last-Modified" in kept.headers else None
    answer: Any = get_conditional_response(request, kept.headers.get("ETag"), since, response)
    for name in ACROSS:
        if name in kept.headers:
            answer[name] = kept.headers[name]
    return answer
