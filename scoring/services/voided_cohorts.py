"""Voiding of a week's cohort: what it did stays on record and can be read, and counts on no leaderboard."""

from datetime import datetime

from django.db import transaction

from cohorts.models import Cohort
from markets.services.cache_versions import Scope, lock_scope, renew_versions
from scoring.models import Snapshot
from scoring.services.family_totals import WINDOW, refresh_family_totals


def void_cohort(cohort: Cohort, *, reason: str, at: datetime) -> bool:
    """Voids a cohort for good; False if it is voided already. The leaderboards are to be recomputed afterwards."""
    with transaction.atomic():
        lock_scope(Scope.SNAPSHOTS)
        if not Cohort.objects.filter(pk=cohort.pk, voided_at=None).update(voided_at=at, void_reason=reason):
            return False
        snapshots = Snapshot.objects.filter(agent__cohort=cohort).order_by()
        instants = sorted(snapshots.values_list("taken_at", flat=True).distinct())
        for start in range(0, len(instants), WINDOW):
            refresh_family_totals(instants[start : start + WINDOW])
        renew_versions(Scope.COMPETITION, Scope.SNAPSHOTS)
    return True
