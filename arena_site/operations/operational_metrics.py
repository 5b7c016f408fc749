"""Operational figures from the database, for `/metrics` and the operator dashboard."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Avg, Count, Model, Q, QuerySet, Subquery, Sum

from agents.letters import published
from agents.models import ModelCall, Position
from agents.services.call_usage import ACCOUNT_REFUSALS
from agents.services.lineups import lineup_releases
from agents.services.settlement import OVERDUE_AFTER
from foundation.bulk import rows_by
from foundation.models import Run
from markets.models import Market, Outcome, PriceObservation, UniverseEntry, VenueTraffic
from markets.sources.registry import SOURCES
from scoring.models import Snapshot

LARGE_TABLES: tuple[type[Model], ...] = (PriceObservation, Snapshot, ModelCall, Run, Market, Outcome, UniverseEntry)
ARENA_TIME_COLUMNS = ((PriceObservation, "observed_at"), (Snapshot, "taken_at"))
REAL_TIME_COLUMNS = ((ModelCall, "sent_at"), (Run, "started_at"))
"""Large tables in order of time, with their time column; a demo's arena clock differs from the real one."""
GROWTH_PERIOD = timedelta(days=7)
LATENCY_PERIOD = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LastRuns:
    """The newest run of a kind, and the newest that succeeded."""

    newest: Run | None = None
    succeeded: Run | None = None


def last_runs(kinds: Sequence[str], rows: QuerySet[Run]) -> dict[str, LastRuns]:
    """The last of these runs of each kind, in one query."""
    newest = []
    for kind in kinds:
        runs = Run.objects.filter(kind=kind).order_by("-started_at", "-pk").values("pk")
        newest += [Subquery(runs[:1]), Subquery(runs.filter(status=Run.Status.SUCCEEDED)[:1])]
    last: dict[str, LastRuns] = {}
    for run in rows.filter(Q(pk__in=newest)).defer("log").order_by("started_at", "pk"):
        before = last.get(run.kind, LastRuns())
        last[run.kind] = LastRuns(run, run if run.status == Run.Status.SUCCEEDED else before.succeeded)
    return last


@dataclass(slots=True)
class ModelFigures:
    """A model's requests: mean latency of the last day, failures and cost of all time."""

    latency_s: float = 0.0
    failures: int = 0
    cost_usd: float = 0.0


def model_figures(now: datetime) -> dict[str, ModelFigures]:
    """The figures of each model of the line-up, and of each that was ever asked."""
    failed = Q(result__in=(ModelCall.Result.FAILED, ModelCall.Result.LOST)) & ~ACCOUNT_REFUSALS
    calls = published(ModelCall.objects.all()).order_by().values("model").annotate(
        latency=Avg("latency_ms", filter=Q(sent_at__gt=now - LATENCY_PERIOD)),
        failures=Count("pk", filter=failed),
        cost=Sum("cost_usd"),
    )  # fmt: skip
    figures = {release.model_id: ModelFigures() for release in lineup_releases(now)}
    for row in calls:
        figures[row["model"]] = ModelFigures((row["latency"] or 0) / 1000, row["failures"], float(row["cost"]))
    return figures


def venue_traffic() -> list[VenueTraffic]:
    """The requests to each venue, those that were never asked too."""
    stored = rows_by("venue", VenueTraffic.objects.all())
    return [stored.get(name) or VenueTraffic(venue=name) for name in SOURCES]


def held_stale_outcomes() -> QuerySet[Outcome]:
    """Outcomes with an open position and a stale price."""
    return Outcome.objects.filter(price_stale=True, positions__status=Position.Status.OPEN).distinct()


def unresolved_markets() -> QuerySet[Market]:
    """Traded markets that closed and await their resolution."""
    return Market.objects.awaiting_resolution().filter(traded=True)


def overdue_markets(at: datetime) -> QuerySet[Market]:
    """Traded markets that are closed without a resolution, or unreadable, for too long."""
    return Market.objects.traded().overdue(at - OVERDUE_AFTER)


def last_verification() -> Run | None:
    """The newest finished run of verify_ledger."""
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
    """Estimated rows of each large table, without counting them."""
    tables = [model._meta.db_table for model in LARGE_TABLES]
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            # The highest row id, which is one index lookup; pruned rows still count.
            query = "SELECT '{0}', coalesce(max(rowid), 0) FROM {0}"
            cursor.execute(" UNION ALL ".join(map(query.format, tables)))
        else:
            # The planner's estimate, which is -1 where a table was never analysed.
            cursor.execute("SELECT relname, greatest(reltuples, 0) FROM pg_class WHERE relname = ANY(%s)", [tables])
        return [(name, int(rows)) for name, rows in cursor.fetchall()]


def rows_added(*, at: datetime, now: datetime) -> dict[str, int]:
    """Estimated rows added within a week to the tables with a time column, from the ids now and then."""
    added = {}
    for clock, tables in ((at, ARENA_TIME_COLUMNS), (now, REAL_TIME_COLUMNS)):
        for model, time in tables:
            rows = model._default_manager.order_by(f"-{time}", "-pk").values_list("pk", flat=True)
            newest, earlier = rows.first() or 0, rows.filter(**{f"{time}__lte": clock - GROWTH_PERIOD}).first() or 0
            added[model._meta.db_table] = newest - earlier
    return added
