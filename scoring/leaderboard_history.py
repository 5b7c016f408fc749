"""Past leaderboards, each stored from the instant on which it holds until the next resolution changes it.

A past leaderboard follows from what had been scored or had resolved by its instant. A service that changes the past
marks the history stale from an instant on (`markets.services.cache_versions`): readers ignore stale rows, the backfill
replaces them, and a leaderboard that is not stored is computed.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from itertools import islice, pairwise
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Subquery

from foundation.locks import lock_rows
from markets.models import CacheVersion
from markets.services.cache_versions import Scope, lock_scope
from scoring.constants import ALL_METHODOLOGIES, FORECAST, TRADING
from scoring.methodologies import versions_in_play
from scoring.models import LeaderboardHistory

SCOPES = {TRADING: Scope.TRADING_HISTORY, FORECAST: Scope.FORECAST_HISTORY}
"""By protocol, the cache version that every change of the past renews."""
BEGINNING, FOREVER = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""Before any resolution; until the next one."""
BATCH = 20
"""Leaderboards that are stored in one transaction: a writer of scores waits no longer than for these."""


class LeaderboardKey(NamedTuple):
    """The selection that a leaderboard shows. Empty fields stand for all."""

    protocol: str
    methodology: str = ""
    arm: str = ""
    category: str = ""


class LeaderboardPeriod(NamedTuple):
    """A leaderboard and the time for which it holds."""

    key: LeaderboardKey
    since: datetime
    until: datetime


def leaderboard_periods(
    leaderboard: LeaderboardKey, resolutions: Iterable[tuple[str, datetime]]
) -> list[LeaderboardPeriod]:
    """The periods of the leaderboards of every category, which the (category, instant) of each resolution begins."""
    instants: dict[str, set[datetime]] = {"": {BEGINNING}}
    for category, at in resolutions:
        instants[""].add(at)
        if category:
            instants.setdefault(category, {BEGINNING}).add(at)
    return [
        LeaderboardPeriod(leaderboard._replace(category=category), since, until)
        for category, times in instants.items()
        for since, until in pairwise([*sorted(times), FOREVER])
    ]


def stored_entries(key: LeaderboardKey, at: datetime | None) -> Any | None:
    """The entries of a leaderboard as of an instant (None: of all scores); None where no current row holds them."""
    if key.methodology and versions_in_play(key.protocol) == [key.methodology]:
        key = key._replace(methodology=ALL_METHODOLOGIES)  # the leaderboard of a single version is the one over all
    stale_from = CacheVersion.objects.filter(scope=SCOPES[key.protocol]).values("stale_from")
    rows = LeaderboardHistory.objects.filter(**key._asdict(), since__lte=FOREVER if at is None else at)
    row = rows.order_by("-since").values_list("until", "entries", Subquery(stale_from)).first()
    if row is None:
        return None
    until, entries, stale = row
    if at is None:
        return entries if until == FOREVER and stale is None else None
    return entries if until > at and (stale is None or at < stale) else None


def begin_backfill(protocol: str) -> str:
    """Deletes the stale leaderboards of a protocol; returns the version under which `store_history` may store new ones.

    To be called before anything is read that a leaderboard is made of.
    """
    scope = SCOPES[protocol]
    with transaction.atomic():
        lock_scope(scope)
        row = CacheVersion.objects.get(scope=scope)
        if row.stale_from is not None:
            stale = LeaderboardHistory.objects.filter(protocol=protocol, until__gt=row.stale_from)
            stale.filter(since__gte=row.stale_from).delete()
            stale.update(until=row.stale_from)
            CacheVersion.objects.filter(scope=scope).update(stale_from=None)
    return row.version


def missing_periods(
    leaderboard: LeaderboardKey, periods: Iterable[LeaderboardPeriod], version: str
) -> list[LeaderboardPeriod]:
    """Those of the leaderboards of every category that are not stored, the newest first.

    A stored leaderboard that was cut short by a change that did not reach it is extended to the end of its period.
    """
    rows = LeaderboardHistory.objects.filter(
        protocol=leaderboard.protocol, methodology=leaderboard.methodology, arm=leaderboard.arm
    )
    columns = ("category", "since", "pk", "until")
    stored = {(category, since): (pk, until) for category, since, pk, until in rows.order_by().values_list(*columns)}
    missing, short = [], []
    for period in periods:
        pk, until = stored.get((period.key.category, period.since), (None, None))
        if pk is None:
            missing.append(period)
        elif until != period.until:
            short.append(LeaderboardHistory(pk=pk, until=period.until))
    if short:
        update = partial(LeaderboardHistory.objects.bulk_update, short, ["until"], batch_size=500)
        _write_under(leaderboard.protocol, version, update)
    return sorted(missing, key=lambda period: period.since, reverse=True)


def store_history(leaderboards: Iterable[tuple[LeaderboardPeriod, Any]], protocol: str, version: str) -> int:
    """Stores leaderboards as they are computed, while the protocol's version is `version`; returns how many."""
    rows = (
        LeaderboardHistory(**period.key._asdict(), since=period.since, until=period.until, entries=entries)
        for period, entries in leaderboards
    )
    stored = 0
    while batch := list(islice(rows, BATCH)):
        create = partial(LeaderboardHistory.objects.bulk_create, batch, ignore_conflicts=True)
        if not _write_under(protocol, version, create):
            break
        stored += len(batch)
    return stored


def _write_under(protocol: str, version: str, write: Callable[[], Any]) -> bool:
    """Writes if the version still holds, which nobody can renew before the transaction ends; False if it does not."""
    with transaction.atomic():
        holds = lock_rows(CacheVersion.objects.filter(scope=SCOPES[protocol], version=version))
        if holds:
            write()
    return bool(holds)
