"""Weekly universes: the frozen markets and prices that every agent of a run sees, and their order books."""

from __future__ import annotations

from decimal import Decimal

from django.db import models
from django.db.models import F, Q

from foundation.fields import RateField
from foundation.row_hashes import RowHashField
from markets.models.market import Market, Outcome

SEALED_AFTER_FREEZE = Q(sealed_until=None) | Q(sealed_until__gt=F("frozen_at"))


class Universe(models.Model):
    """The markets of a week under one methodology, frozen by the week's first run. `sha256` is of the entries."""

    week_start = models.DateTimeField(help_text="Sunday 00:00 UTC of its week.")
    methodology = models.CharField(max_length=20, help_text="The methodology's version.")
    frozen_at = models.DateTimeField(help_text="Time of the freeze.")
    sealed_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="The end of the last window of an external agent that may answer; null without any.",
    )
    sha256 = models.CharField(max_length=64, help_text="SHA-256 of its entries.")
    market_block = models.TextField(help_text="The MARKETS block of every prompt of the run, byte for byte.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["week_start", "methodology"], name="one_universe_per_week_and_methodology"),
            models.CheckConstraint(condition=SEALED_AFTER_FREEZE, name="universe_is_sealed_after_its_freeze"),
        ]
        indexes = [models.Index(fields=["sealed_until"], name="universe_by_seal")]
        ordering = ["-week_start"]

    def __str__(self) -> str:
        return f"{self.week_start:%Y-%m-%d} {self.methodology}"


class UniverseEntry(models.Model):
    """A market in a universe, with the frozen price of each side."""

    universe = models.ForeignKey(Universe, on_delete=models.CASCADE, related_name="entries")
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="universe_entries")
    position = models.PositiveIntegerField(help_text="Its place in the universe, from 1.")
    bettable = models.BooleanField(help_text="False if the market is listed only because an agent of the run holds it.")
    open = models.BooleanField(help_text="False if the market was closed at the freeze and awaited its resolution.")
    prices = models.JSONField(help_text="Side to price, a decimal string in US dollars a share.")
    sources = models.JSONField(help_text="Side to its price's `source` and whether it was `stale`.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["universe", "market"], name="one_entry_per_universe_and_market")]
        ordering = ["universe_id", "position"]

    def __str__(self) -> str:
        return f"{self.universe}: {self.market}"

    def price(self, side: str) -> Decimal | None:
        text = self.prices.get(side)
        return None if text is None else Decimal(text)

    def is_stale(self, side: str) -> bool:
        return bool(self.sources.get(side, {}).get("stale", True))


class OrderBook(models.Model):
    """The book of one side of a market at the freeze, as deep as any trade of the run could reach, and its fee.

    A level is a price and a number of shares, both decimal strings; the best level comes first.
    """

    universe = models.ForeignKey(
        Universe,
        on_delete=models.CASCADE,
        related_name="order_books",
        help_text="The universe at whose freeze the book was captured.",
    )
    outcome = models.ForeignKey(Outcome, on_delete=models.PROTECT, related_name="order_books")
    captured_at = models.DateTimeField(help_text="When it was captured, by the real clock.")
    bids = models.JSONField(help_text="Levels from the highest price down, each a price and a number of shares.")
    asks = models.JSONField(
        help_text="Levels from the lowest price up, as deep as the largest account of the run could reach."
    )
    fee_rate = RateField(null=True, blank=True, help_text="Rate of the taker's fee; null where the venue states none.")
    fee_exponent = RateField(null=True, blank=True, help_text="Exponent of the taker's fee.")
    fee_unknown = models.BooleanField(
        default=False,
        help_text="True if the venue takes a fee whose terms could not be read; its trades have no figures.",
    )
    row_sha256 = RowHashField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["universe", "outcome"], name="one_order_book_per_universe_and_outcome")
        ]
        ordering = ["universe_id", "pk"]

    def __str__(self) -> str:
        return f"{self.universe}: book of {self.outcome}"
