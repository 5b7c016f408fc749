"""Markets and their outcomes."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from django.db import models
from django.db.models import Max, Q

from foundation.change_times import ChangeTime, TimedQuerySet
from foundation.fields import MoneyField, PriceField, RateField
from markets.sources.base import PROPOSED
from markets.sources.registry import SOURCES, source_choices

YES, NO = "YES", "NO"
LISTING_SLACK = timedelta(hours=1)
"""A market counts as listed if a catalogue walk within this time of the newest one showed it."""


class MarketQuerySet(TimedQuerySet["Market"]):
    def open(self, at: datetime | None = None) -> MarketQuerySet:
        """Markets that accept orders now, or that were not closed at the instant `at`."""
        if at is None:
            return self.filter(status=Market.Status.ACTIVE, accepts_orders=True)
        return self.filter(Q(closed_at=None) | Q(closed_at__gt=at), first_seen_at__lte=at)

    def listed(self, source: str, at: datetime | None = None) -> MarketQuerySet:
        """Open markets that the source's newest catalogue walks showed; at an instant `at`, all that were open."""
        markets = self.filter(source=source)
        if at is not None:
            return markets.open(at)
        newest = markets.aggregate(newest=Max("listed_at"))["newest"]
        return markets.open().filter(listed_at__gte=newest - LISTING_SLACK) if newest else self.none()

    def offered(self, source: str, at: datetime, *, replay: bool) -> MarketQuerySet:
        """Listed markets that are neither over nor have a result proposed or disputed: to be bet on and asked about."""
        return self.listed(source, at if replay else None).filter(Q(over_since=None) | Q(over_since__gt=at))

    def deciding_exclusive_events(self, at: datetime) -> MarketQuerySet:
        """Markets that settle their exclusive event, or may: the winner, and those over at `at` without a result.

        A closed market that nothing depends on is left out, since its result is never read.
        """
        has_result = Q(resolved_at__lte=at)
        won = Q(has_result, winning_outcome__side=YES)
        is_read = Q(status=Market.Status.ACTIVE) | Q(traded=True) | Q(has_questions=True)
        return self.filter(won | Q(~has_result, is_read, over_since__lte=at), event_exclusive=True)

    def traded(self) -> MarketQuerySet:
        """Unsettled markets that an agent has traded."""
        return self.unsettled().filter(traded=True)

    def tracked(self) -> MarketQuerySet:
        """Unsettled markets whose resolution a position or a question depends on."""
        return self.unsettled().filter(Q(traded=True) | Q(has_questions=True))

    def unsettled(self) -> MarketQuerySet:
        return self.filter(status__in=(Market.Status.ACTIVE, Market.Status.CLOSED))

    def awaiting_resolution(self) -> MarketQuerySet:
        return self.filter(status=Market.Status.CLOSED)

    def overdue(self, before: datetime) -> MarketQuerySet:
        """Unsettled ones that were closed, or could not be read, since before an instant."""
        closed = Q(status=Market.Status.CLOSED, closed_at__lte=before)
        return self.unsettled().filter(closed | Q(unreadable_since__lte=before))

    def newest_instant(self) -> datetime | None:
        """The newest instant at which a source was read."""
        return self.aggregate(newest=Max("refreshed_at"))["newest"]


class Market(ChangeTime):
    """A yes-or-no or multiple-choice market at a venue. Its status only moves forward."""

    class Kind(models.TextChoices):
        BINARY = "binary"
        MULTI = "multi"

    class Status(models.TextChoices):
        ACTIVE = "active"
        CLOSED = "closed"
        RESOLVED = "resolved"
        CANCELLED = "cancelled"

    source = models.CharField(max_length=20, choices=source_choices, help_text="Its venue.")
    external_id = models.CharField(max_length=120, help_text="The venue's id.")
    condition_id = models.CharField(max_length=120, blank=True)
    slug = models.CharField(max_length=300, blank=True, help_text="The venue's short name.")
    question = models.TextField(help_text="The question.")
    description = models.TextField(blank=True)
    category = models.CharField(max_length=120, blank=True, db_index=True, help_text="The venue's category.")
    event_id = models.CharField(
        max_length=120, blank=True, db_index=True, help_text="Shared by the markets of one event."
    )
    event_title = models.TextField(blank=True, help_text="The event's title.")
    event_exclusive = models.BooleanField(
        null=True,
        blank=True,
        help_text="True if its venue states that at most one market of the event resolves to Yes.",
    )
    option = models.TextField(blank=True, default="", help_text="Its name within the event.")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.ACTIVE)
    accepts_orders = models.BooleanField(default=True)
    oracle_status = models.CharField(max_length=40, blank=True)
    unresolved_reason = models.TextField(
        blank=True, default="", help_text="Why the closed market did not count as resolved when it was last checked."
    )
    unreadable_since = models.DateTimeField(
        null=True, blank=True, help_text="Since when its venue's row of it can not be read; null while it can."
    )
    over_since = models.DateTimeField(
        null=True, blank=True,
        help_text="Since when it is over at its venue, or has a result proposed or disputed: held and sold only.",
    )  # fmt: skip
    volume = MoneyField(default=Decimal(0), help_text="Traded volume in dollars, by the venue.")
    volume_24h = MoneyField(null=True, blank=True, help_text="US dollars traded in the last 24 hours, if stated.")
    liquidity = MoneyField(
        null=True, blank=True, help_text="Liquidity in dollars, by the venue; null where it states none."
    )
    fee_rate = RateField(null=True, blank=True, help_text="Of the venue's fee for takers; null if it states none.")
    fee_exponent = RateField(null=True, blank=True)
    fee_unknown = models.BooleanField(default=False, help_text="The venue takes a fee whose terms can not be read.")
    closes_at = models.DateTimeField(null=True, blank=True, help_text="Scheduled close, for display only.")
    created_at = models.DateTimeField(
        null=True, blank=True, help_text="When its venue created it, as the venue states; null if it does not."
    )
    first_seen_at = models.DateTimeField()
    listed_at = models.DateTimeField(null=True, blank=True, help_text="The last sync that listed it as open.")
    refreshed_at = models.DateTimeField(db_index=True, help_text="When it was last read from its source.")
    traded = models.BooleanField(
        default=False, help_text="An agent traded it: it is refreshed, and priced with snapshots, until it is final."
    )
    has_questions = models.BooleanField(
        default=False, help_text="A question refers to it: it is refreshed until it is final."
    )
    closed_at = models.DateTimeField(null=True, blank=True, help_text="First time seen closed.")
    resolved_at = models.DateTimeField(null=True, blank=True, help_text="Time of resolution or cancellation.")
    result_read_at = models.DateTimeField(
        null=True, blank=True, help_text="When its venue's result was last read again after its settlement."
    )
    winning_outcome = models.ForeignKey(
        "markets.Outcome",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The outcome that won.",
    )

    objects = MarketQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "external_id"], name="one_market_per_source_and_id"),
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
            models.Index(fields=["liquidity", "id"], name="market_by_liquidity"),
            models.Index(fields=["closes_at", "id"], name="market_by_close"),
            models.Index(fields=["resolved_at", "id"], name="market_by_resolution"),
        ]
        ordering = ["-volume", "pk"]

    def __str__(self) -> str:
        return self.question

    @property
    def is_open(self) -> bool:
        return self.status == self.Status.ACTIVE and self.accepts_orders

    @property
    def is_result_proposed(self) -> bool:
        """Whether its oracle has had a result proposed, disputed or decided."""
        return self.oracle_status in PROPOSED

    @property
    def is_final(self) -> bool:
        return self.status in (self.Status.RESOLVED, self.Status.CANCELLED)

    def resolved_by(self, at: datetime | None) -> bool:
        """Whether it had a winner at an instant; None is now."""
        return self.status == self.Status.RESOLVED and (at is None or self.resolved_at <= at)  # type: ignore[operator]

    @property
    def winning_side(self) -> str | None:
        return self.winning_outcome.side if self.winning_outcome else None

    @property
    def venue_url(self) -> str | None:
        """The address of its page at its venue; None where its slug is no part of an address."""
        return SOURCES[self.source].page_url(self.external_id, self.slug)

    @property
    def event_key(self) -> str:
        """The key shared by the markets of one event, the unit that confidence intervals resample."""
        return f"{self.source}:{self.event_id}" if self.event_id else f"market:{self.pk}"


class Outcome(ChangeTime):
    """One side of a market: its token, the venue's quote and the last accepted price."""

    class PriceSource(models.TextChoices):
        MIDPOINT = "midpoint", "midpoint of the book"
        GAMMA = "gamma", "Gamma price"
        TRADE = "trade", "last trade at the venue"
        RETAINED = "retained", "last accepted price, retained"

    market = models.ForeignKey(Market, on_delete=models.CASCADE, related_name="outcomes")
    index = models.PositiveSmallIntegerField(help_text="Its place in the venue's list.")
    name = models.CharField(max_length=300, help_text="The venue's name for it.")
    side = models.CharField(max_length=300, help_text="Its name in bets: YES, NO, or the outcome's name.")
    token_id = models.CharField(max_length=120, blank=True, help_text="The venue's token id.")
    quote = PriceField(null=True, blank=True, help_text="The price in the venue's catalogue, as last read.")
    quote_at = models.DateTimeField(null=True, blank=True)
    bid = PriceField(null=True, blank=True)
    ask = PriceField(null=True, blank=True)
    price = PriceField(null=True, blank=True, help_text="The last accepted price.")
    price_at = models.DateTimeField(null=True, blank=True, help_text="When a price was last accepted.")
    price_source = models.CharField(
        max_length=10, choices=PriceSource.choices, blank=True, help_text="Source of the price."
    )
    price_stale = models.BooleanField(
        default=False, help_text="True if the price is an earlier one, because no new one could be accepted."
    )

    objects = TimedQuerySet.as_manager()

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
