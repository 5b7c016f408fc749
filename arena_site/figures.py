"""How the arena is doing, one function for each figure: for `/metrics` and for the operator's desk alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.db.models import Model, Q, QuerySet, Subquery

from agents.models import Decision, ModelCall, Position
from agents.services.settlement import ALARM_AFTER
from cohorts.weeks import week_start
from markets.models import Alert, Market, Outcome, PriceObservation, Run, UniverseEntry
from scoring.models import Snapshot

BIG: tuple[type[Model], ...] = (PriceObservation, Snapshot, ModelCall, Run, Market, Outcome, UniverseEntry)
"""Tables that grow."""
OF_THE_ARENA = ((PriceObservation, "observed_at"), (Snapshot, "taken_at"))
OF_THE_REAL_CLOCK = ((ModelCall, "sent_at"), (Run, "started_at"))
"""Those of them that grow by the clock, with the column that says when, by which clock."""
GROWTH_OVER = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class LastRuns:
    """The newest run of a kind, and the newest that succeeded."""

    last: Run | None = None
    good: Run | None = None


def last_runs(kinds: Sequence[str]) -> dict[str, LastRuns]:
    """By kind of run; one query, however many there are on record."""
    newest = [
        Subquery(runs.order_by("-started_at", "-pk").values("pk")[:1])
        for kind in kinds
        for runs in (Run.objects.filter(kind=kind), Run.objects.filter(kind=kind, status=Run.Status.SUCCEEDED))
    ]
    found: dict[str, LastRuns] = {}
    for run in Run.objects.filter(Q(pk__in=newest)).defer("log").order_by("started_at", "pk"):
        before = found.get(run.kind, LastRuns())
        found[run.kind] = LastRuns(run, run if run.status == Run.Status.SUCCEEDED else before.good)
    return found


def decisions_of_week(at: datetime) -> Any:
    return Decision.objects.filter(universe__week_start=week_start(at))


def held_stale_prices() -> QuerySet[Outcome]:
    """Outcomes held by an agent whose price is stale."""
    return Outcome.objects.filter(price_stale=True, positions__status=Position.Status.OPEN).distinct()


def markets_awaiting() -> QuerySet[Market]:
    """Markets that closed and that money depends on."""
    return Market.objects.awaiting_resolution().filter(followed=True)


def markets_overdue(at: datetime) -> QuerySet[Market]:
    """Those of them that have waited for longer than the rules call normal."""
    return Market.objects.followed().filter(status=Market.Status.CLOSED, closed_at__lte=at - ALARM_AFTER)


def open_alerts() -> QuerySet[Alert]:
    """Alerts that nobody has acknowledged and whose cause is not gone."""
    return Alert.objects.filter(cleared_at=None)


def last_proof() -> Run | None:
    """The newest run of verify_ledger that came to its end."""
    return Run.objects.filter(kind="verify_ledger").exclude(finished_at=None).order_by("-started_at").first()


def database_bytes() -> int:
    """The database's size on disk."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        else:
            cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def table_rows() -> list[tuple[str, int]]:
    """About how many rows each big table holds, without counting them."""
    tables = [model._meta.db_table for model in BIG]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # The highest ids: one look at the end of each tree. Rows that were pruned are counted still.
            parts = [f"SELECT '{table}', coalesce(max(rowid), 0) FROM {table}" for table in tables]  # noqa: S608 - ours
            cursor.execute(" UNION ALL ".join(parts))
        else:
            # What the planner believes; below zero where a table was never analysed.
            cursor.execute("SELECT relname, greatest(reltuples, 0) FROM pg_class WHERE relname = ANY(%s)", [tables])
        return [(name, int(rows)) for name, rows in cursor.fetchall()]


def rows_added(*, at: datetime, now: datetime) -> dict[str, int]:
    """About how many rows came to the tables that grow by the clock within a week: ids now, less ids then."""
    added = {}
    for clock, tables in ((at, OF_THE_ARENA), (now, OF_THE_REAL_CLOCK)):
        for model, time in tables:
            rows = model._default_manager.order_by(f"-{time}", "-pk").values_list("pk", flat=True)
            newest, then = rows.first() or 0, rows.filter(**{f"{time}__lte": clock - GROWTH_OVER}).first() or 0
            added[model._meta.db_table] = newest - then
    return added
