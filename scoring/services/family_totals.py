"""Family totals, kept equal to the sums of their snapshots, and the voiding of cohorts, whose totals stand apart."""

from collections.abc import Collection, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Count, QuerySet, Sum

from cohorts.models import Cohort
from markets.services.cache_versions import Scope, lock_scope, renew_versions
from scoring.models import FamilyTotal, Snapshot

Sums = dict[tuple[datetime, int], tuple[int, Decimal]]
"""The number of agents with a snapshot and their total value, by instant and family id."""
WINDOW = 1_000
"""Instants whose totals are compared at a time: a week of the snapshots' grid."""


def refresh_family_totals(instants: Collection[datetime]) -> None:
    """Makes the totals of some instants what their snapshots sum to.

    To be called after the snapshots are written, in a transaction that holds the lock of their cache version: two
    writers that sum at once would each miss the other's rows.
    """
    summed = _summed(Snapshot.objects.filter(taken_at__in=instants))
    FamilyTotal.objects.filter(taken_at__in=instants).delete()
    totals = []
    for (at, family), figures in sorted(summed.items()):
        totals.append(FamilyTotal(taken_at=at, family_id=family, agents=figures[0], total=figures[1]))
    FamilyTotal.objects.bulk_create(totals, batch_size=200)


def family_total_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each total that is not the sum of its snapshots; with `repair`, it becomes that."""
    instants = sorted({*_instants(Snapshot.objects.all()), *_instants(FamilyTotal.objects.all())})
    for start in range(0, len(instants), WINDOW):
        window = (instants[start], instants[start : start + WINDOW][-1])
        with transaction.atomic():
            if repair:  # a verification reads one state, which it must not lock
                lock_scope(Scope.SNAPSHOTS)
            totals = FamilyTotal.objects.filter(taken_at__range=window)
            stored = _by_key(totals.order_by().values_list("taken_at", "family", "agents", "total"))
            summed = _summed(Snapshot.objects.filter(taken_at__range=window))
            wrong = {key for key in stored.keys() | summed.keys() if stored.get(key) != summed.get(key)}
            if wrong and repair:
                refresh_family_totals({at for at, _ in wrong})
                renew_versions(Scope.SNAPSHOTS)
        for at, family in sorted(wrong):
            total, right = _text(stored.get((at, family))), _text(summed.get((at, family)))
            yield f"total of family {family} at {at:%Y-%m-%d %H:%M} is {total}, its snapshots make {right}"


def _instants(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.order_by().values_list("taken_at", flat=True).distinct()


def _summed(snapshots: QuerySet[Snapshot]) -> Sums:
    valid_snapshots = snapshots.filter(agent__cohort__voided_at=None).order_by()
    return _by_key(valid_snapshots.values_list("taken_at", "agent__family").annotate(Count("pk"), Sum("total_value")))


def _by_key(rows: QuerySet[Any]) -> Sums:
    sums: Sums = {}
    for at, family, *total in rows:
        sums[at, family] = (total[0], total[1])
    return sums


def _text(total: tuple[int, Decimal] | None) -> str:
    return "missing" if total is None else f"{total[1]} of {total[0]} agents"


def void_cohort(cohort: Cohort, *, reason: str, at: datetime) -> bool:
    """Voids a cohort for good; False if it is voided already. The leaderboards are to be recomputed afterwards."""
    with transaction.atomic():
        lock_scope(Scope.SNAPSHOTS)
        if not Cohort.objects.filter(pk=cohort.pk, voided_at=None).update(voided_at=at, void_reason=reason):
            return False
        instants = sorted(_instants(Snapshot.objects.filter(agent__cohort=cohort)))
        for start in range(0, len(instants), WINDOW):
            refresh_family_totals(instants[start : start + WINDOW])
        renew_versions(Scope.COMPETITION, Scope.SNAPSHOTS)
    return True
