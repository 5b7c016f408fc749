"""Price decisions as they were recorded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import models
from django.db.models import Max, Q

from foundation.fields import PriceField
from foundation.row_hashes import RowHashField
from markets.models.market import Outcome


class PriceObservationQuerySet(models.QuerySet["PriceObservation"]):
    def newest_instant(self) -> datetime | None:
        return self.aggregate(newest=Max("observed_at"))["newest"]

    def latest(self, outcomes: Iterable[int], at: datetime) -> dict[int, PriceObservation]:  # type: ignore[override]
        """The last observation at or before `at`, by outcome id."""
        last = (
            self.filter(outcome__in=list(outcomes), observed_at__lte=at)
            .values("outcome")
            .annotate(newest=Max("observed_at"))
            .order_by()
        )
        newest = dict(last.values_list("outcome", "newest"))
        latest: dict[int, PriceObservation] = {}
        for row in self.filter(outcome__in=newest.keys(), observed_at__in=set(newest.values())).order_by("pk"):
            if newest[row.outcome_id] == row.observed_at:
                latest[row.outcome_id] = row
        return latest


class PriceObservation(models.Model):
    """The price decision on an outcome at an instant, recorded if it differs from the one before."""

    outcome = models.ForeignKey(Outcome, on_delete=models.CASCADE, related_name="observations")
    observed_at = models.DateTimeField(help_text="Time of observation.")
    price = PriceField(null=True, blank=True, help_text="The accepted price; null if there is none.")
    source = models.CharField(
        max_length=10, choices=Outcome.PriceSource.choices, blank=True, help_text="Source of the price."
    )
    stale = models.BooleanField(default=False, help_text="True if the price is an earlier one.")
    reason = models.CharField(max_length=300, help_text="The reason for the choice.")
    midpoint = PriceField(null=True, blank=True, help_text="Midpoint of the order book.")
    gamma = PriceField(null=True, blank=True, help_text="Price of the venue's catalogue.")
    bid = PriceField(null=True, blank=True, help_text="Best bid.")
    ask = PriceField(null=True, blank=True, help_text="Best ask.")
    row_sha256 = RowHashField()

    objects = PriceObservationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(price__isnull=True) | Q(price__gte=0, price__lte=1), name="observed_price_between_0_and_1"
            )
        ]
        indexes = [
            models.Index(fields=["outcome", "-observed_at"], name="price_by_outcome_and_time"),
            models.Index(fields=["-observed_at"], name="price_by_time"),
        ]
        ordering = ["-observed_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.outcome} {self.price} ({self.source})"
