"""Markets and their outcomes."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.db import models
from django.db.models import Max, Q

from markets.fields import MoneyField, PriceField

YES, NO = "YES", "NO"


class MarketQuerySet(models.QuerySet["Market"]):
    def open(self, at: datetime | None = None) -> MarketQuerySet:
        """Markets that can be traded: now, or as far as is recorded at the instant `at`."""
        if at is None:
            return self.filter(status=Market.Status.ACTIVE, accepts_orders=True)
        return self.filter(Q(closed_at=None) | Q(closed_at__gt=at), first_seen_at__lte=at)

    def followed(self) -> MarketQuerySet:
        """Markets that somebody's money depends on until they are final."""
        return self.unsettled().filter(followed=True)

    def awaited(self) -> MarketQuerySet:
        """Markets whose end is awaited: money or a question depends on them."""
        return self.unsettled().filter(Q(followed=True) | Q(asked=True))

    def unsettled(self) -> MarketQuerySet:
        return self.filter(status__in=(Market.Status.ACTIVE, Market.Status.CLOSED))

    def awaiting_resolution(self) -> MarketQuerySet:
        return self.filter(status=Market.Status.CLOSED)

    def newest_instant(self) -> datetime | None:
        """The newest instant for which anything was recorded from the network."""
        return self.aggregate(newest=Max("refreshed_at"))["newest"]


class Market(models.Model):
    """A question on which shares are traded. Its status only moves forward."""

    class Source(models.TextChoices):
        POLYMARKET = "polymarket"
        KALSHI = "kalshi"

    class Kind(models.TextChoices):
        BINARY = "binary"
        MULTI = "multi"

    class Status(models.TextChoices):
        ACTIVE = "active"
        CLOSED = "closed"
        RESOLVED = "resolved"
        CANCELLED = "cancelled"

    source = models.CharField(max_length=20, choices=Source.choices)
    external_id = models.CharField(max_length=120)
    condition_id = models.CharField(max_length=120, blank=True)
    slug = models.CharField(max_length=300, blank=True)
    question = models.TextField()
    description = models.TextField(blank=True)
    category = models.CharField(max_length=120, blank=True, db_index=True)
    event_id = models.CharField(max_length=120, blank=True, db_index=True)
    event_title = models.TextField(blank=True)
    event_exclusive = models.BooleanField(
        null=True, blank=True, help_text="The venue says that at most one market of its event ends in Yes."
    )
    option = models.TextField(blank=True, default="", help_text="What it is called within its event.")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    accepts_orders = models.BooleanField(default=True)
    oracle_status = models.CharField(max_length=40, blank=True)
    volume = MoneyField(default=Decimal(0))
    liquidity = MoneyField(null=True, blank=True)
    closes_at = models.DateTimeField(null=True, blank=True, help_text="The nominal deadline; decides nothing.")
    first_seen_at = models.DateTimeField()
    listed_at = models.DateTimeField(null=True, blank=True, help_text="The last catalogue walk that listed it as open.")
    refreshed_at = models.DateTimeField(db_index=True, help_text="When its source was last heard about it.")
    followed = models.BooleanField(
        default=False, help_text="Someone traded on it: it is refreshed and marked until it is final."
    )
    asked = models.BooleanField(
        default=False, help_text="A question stands on it: it is refreshed and resolved, but marked as any other."
    )
    closed_at = models.DateTimeField(null=True, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    winning_outcome = models.ForeignKey(
        "markets.Outcome", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    objects = MarketQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "external_id"], name="one_market_per_source_and_id"),
            models.CheckConstraint(
                condition=Q(status__in=["active", "closed", "resolved", "cancelled"]),
                name="market_status_known",
            ),
            models.CheckConstraint(
                condition=(Q(status="resolved") & Q(winning_outcome__isnull=False))
                | (~Q(status="resolved") & Q(winning_outcome__isnull=True)),
                name="resolved_market_has_a_winner",
            ),
            models.CheckConstraint(
                condition=Q(status="active", resolved_at__isnull=True, closed_at__isnull=True)
                | Q(status="closed", resolved_at__isnull=True, closed_at__isnull=False)
                | Q(status__in=["resolved", "cancelled"], resolved_at__isnull=False, closed_at__isnull=False),
                name="market_times_match_its_status",
            ),
        ]
        indexes = [
            models.Index(fields=["status", "-volume"], name="market_by_status_and_volume"),
            models.Index(fields=["-volume", "id"], name="market_by_volume"),
        ]
        ordering = ["-volume", "pk"]

    def __str__(self) -> str:
        return self.question

    @property
    def is_open(self) -> bool:
        return self.status == self.Status.ACTIVE and self.accepts_orders

    @property
    def is_final(self) -> bool:
        return self.status in (self.Status.RESOLVED, self.Status.CANCELLED)

    @property
    def winning_side(self) -> str | None:
        return self.winning_outcome.side if self.winning_outcome else None

    @property
    def event_key(self) -> str:
        """What markets of one event share: the unit by which intervals resample."""
        return f"{self.source}:{self.event_id}" if self.event_id else f"market:{self.pk}"


class Outcome(models.Model):
    """One side of a market: the token behind it, its venue's quote and the price the arena accepts."""

    class PriceSource(models.TextChoices):
        MIDPOINT = "midpoint", "midpoint of the book"
        GAMMA = "gamma", "Gamma price"
        TRADE = "trade", "last trade"
        LAST = "last", "last accepted price"

    market = models.ForeignKey(Market, on_delete=models.CASCADE, related_name="outcomes")
    index = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=300)
    side = models.CharField(max_length=300, help_text="What a bet calls it: YES, NO, or the outcome's name.")
    token_id = models.CharField(max_length=120, blank=True)
    quote = PriceField(null=True, blank=True, help_text="The catalogue's price, as last seen.")
    quote_at = models.DateTimeField(null=True, blank=True)
    bid = PriceField(null=True, blank=True)
    ask = PriceField(null=True, blank=True)
    price = PriceField(null=True, blank=True, help_text="The last accepted price.")
    price_at = models.DateTimeField(null=True, blank=True, help_text="When a price was last accepted.")
    price_source = models.CharField(max_length=10, choices=PriceSource.choices, blank=True)
    price_stale = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["market", "index"], name="one_outcome_per_index"),
            models.UniqueConstraint(fields=["market", "side"], name="one_outcome_per_side"),
            models.CheckConstraint(
                condition=Q(price__isnull=True) | Q(price__gte=0, price__lte=1), name="price_between_0_and_1"
            ),
        ]
        ordering = ["market_id", "index"]

    def __str__(self) -> str:
        return self.side
