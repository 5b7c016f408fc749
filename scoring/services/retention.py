"""Retention: all detail while it is new, one row an hour or a day once it is old."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.functions import ExtractHour, ExtractMinute

from cohorts.weeks import next_grid_instant
from foundation.bulk import in_batches
from foundation.models import Run
from markets.models import PriceObservation
from scoring.models import Snapshot
from scoring.services.snapshots import delete_snapshots, ended_cohorts

DAY = timedelta(days=1)
FINE, HOURLY = 30 * DAY, 180 * DAY
"""Ages of snapshots: the whole ten-minute grid up to the first, one an hour up to the second, then one a day."""
PRICES_FINE = 180 * DAY
"""The age up to which every observed price is retained; of older ones the last of each day is."""
INSTANTS = 10
"""Instants of which snapshots are deleted in one transaction: a moment's lock, so that no writer waits long."""
RUNS, FAILED_RUNS = 90 * DAY, 365 * DAY


def prune(*, at: datetime) -> dict[str, int]:
    """Thins what is old at `at`; returns how many rows of each kind.

    The inputs of money, scores and prompts are never deleted: calls, trades, journal.
    """
    return {"snapshots": prune_snapshots(at=at), "prices": prune_prices(at=at), "runs": prune_runs(at=at)}


def prune_snapshots(*, at: datetime) -> int:
    """Thins snapshots; each agent's newest and the closing ones of a cohort stay."""
    newer = Snapshot.objects.filter(agent=OuterRef("agent"), taken_at__gt=OuterRef("taken_at"))
    on_the_hour = Snapshot.objects.alias(minute=ExtractMinute("taken_at"), hour=ExtractHour("taken_at"))
    surplus = on_the_hour.filter(
        Q(taken_at__lt=at - FINE) & ~Q(minute=0) | Q(taken_at__lt=at - HOURLY) & ~Q(hour=0, minute=0)
    ).filter(Exists(newer))
    closing = {cohort.pk: next_grid_instant(cohort.ended_at) for cohort in ended_cohorts()}
    # By instant, since the totals of each instant are summed anew.
    instants = list(surplus.order_by("taken_at").values_list("taken_at", flat=True).distinct())
    pruned = 0
    for start in range(0, len(instants), INSTANTS):
        rows = surplus.filter(taken_at__in=instants[start : start + INSTANTS])
        columns = rows.order_by("pk").values_list("pk", "agent__cohort", "taken_at")
        keys = [pk for pk, cohort, taken_at in columns if closing.get(cohort) != taken_at]
        pruned += delete_snapshots(keys) if keys else 0
    return pruned


def prune_prices(*, at: datetime) -> int:
    """Deletes old prices but the last of each outcome and day, a day at a time."""
    end = (at - PRICES_FINE).replace(hour=0, minute=0, second=0, microsecond=0)
    pruned = 0
    for day in _days_with_prices(until=end):
        observed = PriceObservation.objects.filter(observed_at__gte=day, observed_at__lt=day + DAY)
        later = observed.filter(outcome=OuterRef("outcome")).filter(
            Q(observed_at__gt=OuterRef("observed_at")) | Q(observed_at=OuterRef("observed_at"), pk__gt=OuterRef("pk"))
        )
        pruned += _delete(observed.filter(Exists(later)))
    return pruned


def prune_runs(*, at: datetime) -> int:
    """Deletes old runs, failed ones later; the newest of each kind and status stays."""
    newer = Run.objects.filter(kind=OuterRef("kind"), status=OuterRef("status"), pk__gt=OuterRef("pk"))
    failed = Q(status=Run.Status.FAILED)
    old = Run.objects.filter(
        ~failed & Q(started_at__lt=at - RUNS) | failed & Q(started_at__lt=at - FAILED_RUNS)
    ).filter(Exists(newer))
    return _delete(old)


def _days_with_prices(*, until: datetime) -> Iterator[datetime]:
    observed = PriceObservation.objects.filter(observed_at__lt=until).order_by("observed_at")
    first = observed.values_list("observed_at", flat=True).first()
    while first is not None:
        day = first.replace(hour=0, minute=0, second=0, microsecond=0)
        yield day
        first = observed.filter(observed_at__gte=day + DAY).values_list("observed_at", flat=True).first()


def _delete(rows: QuerySet) -> int:
    """Deletes rows in short transactions; returns how many."""
    deleted = 0
    for batch in in_batches(rows):
        keys = [pk for (pk,) in batch]
        deleted += rows.model._default_manager.filter(pk__in=keys).delete()[0]
    return deleted
