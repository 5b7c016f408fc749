"""Family totals, kept equal to the sums of the snapshots that they are derived from."""

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Count, Max, Min, QuerySet, Sum

from markets.services.cache_versions import Scope, lock_scope, renew_versions
from scoring.models import FamilyTotal, Snapshot

Key = tuple[datetime, int]
"""An instant and a family's id."""
Sums = dict[Key, tuple[int, Decimal]]
"""The number of agents with a snapshot, and their total value."""
WINDOW = timedelta(days=7)
"""The stretch of snapshots that is compared at a time."""


def refresh_family_totals(instants: Collection[datetime]) -> None:
    """Makes the totals of some instants what their snapshots sum to.

    To be called after the snapshots are written, in a transaction that holds the lock of their cache version: two
    writers that sum at once would each miss the other's rows.
    """
    stored = FamilyTotal.objects.filter(taken_at__in=instants)
    summed = _summed(Snapshot.objects.filter(taken_at__in=instants))
    _upsert(summed)
    _delete(stored, summed)


def family_total_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each total that is not the sum of its snapshots; with `repair`, it becomes that."""
    for start, end in _windows():
        with transaction.atomic():
            lock_scope(Scope.SNAPSHOTS)
            totals = FamilyTotal.objects.filter(taken_at__gte=start, taken_at__lt=end)
            stored = {(at, family): (agents, total) for at, family, agents, total in totals.order_by().values_list(
                "taken_at", "family", "agents", "total")}  # fmt: skip
            summed = _summed(Snapshot.objects.filter(taken_at__gte=start, taken_at__lt=end))
            wrong = {key for key in stored.keys() | summed.keys() if stored.get(key) != summed.get(key)}
            if wrong and repair:
                _upsert({key: summed[key] for key in wrong & summed.keys()})
                _delete(totals, summed)
                renew_versions(Scope.SNAPSHOTS)
        for at, family in sorted(wrong):
            have, due = (_text(totals_by_key.get((at, family))) for totals_by_key in (stored, summed))
            yield f"total of family {family} at {at:%Y-%m-%d %H:%M} is {have}, its snapshots make {due}"


def _windows() -> Iterator[tuple[datetime, datetime]]:
    """Half-open stretches of time that hold every snapshot and every total."""
    ends = [
        model._default_manager.aggregate(first=Min("taken_at"), last=Max("taken_at"))
        for model in (Snapshot, FamilyTotal)
    ]
    instants = [instant for pair in ends for instant in pair.values() if instant is not None]
    start = min(instants, default=None)
    while start is not None and start <= max(instants):
        yield start, start + WINDOW
        start += WINDOW


def _summed(snapshots: QuerySet[Snapshot]) -> Sums:
    rows = snapshots.order_by().values_list("taken_at", "agent__family").annotate(Count("pk"), Sum("total_value"))
    return {(at, family): (agents, total) for at, family, agents, total in rows}


def _upsert(sums: Sums) -> None:
    rows = [
        FamilyTotal(taken_at=at, family_id=family, agents=agents, total=total)
        for (at, family), (agents, total) in sorted(sums.items())
    ]
    FamilyTotal.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["taken_at", "family"], update_fields=["agents", "total"],
        batch_size=200,
    )  # fmt: skip


def _delete(totals: QuerySet[FamilyTotal], summed: Sums) -> None:
    """Deletes those of the totals of which no snapshot is left."""
    keys = totals.order_by().values_list("pk", "taken_at", "family")
    if deleted := [pk for pk, at, family in keys if (at, family) not in summed]:
        FamilyTotal.objects.filter(pk__in=deleted).delete()


def _text(total: tuple[int, Decimal] | None) -> str:
    return "missing" if total is None else f"{total[1]} of {total[0]} agents"
