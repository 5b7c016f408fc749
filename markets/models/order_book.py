"""Order books as they were captured at the freeze of a universe."""

from __future__ import annotations

from django.db import models

from foundation.fields import RateField
from foundation.row_hashes import RowHashField
from markets.models.market import Outcome
from markets.models.universe import Universe


class OrderBook(models.Model):
    """The book of one side of a market at the freeze, as deep as any trade of the run could reach, and its fee.

    A level is a price and a number of shares, both decimal strings; the best level comes first.
    """

    universe = models.ForeignKey(Universe, on_delete=models.CASCADE, related_name="order_books")
    outcome = models.ForeignKey(Outcome, on_delete=models.PROTECT, related_name="order_books")
    captured_at = models.DateTimeField(help_text="By the real clock.")
    bids = models.JSONField(help_text="[[price, shares], …], the highest price first.")
    asks = models.JSONField(help_text="[[price, shares], …], the lowest price first.")
    fee_rate = RateField(null=True, blank=True, help_text="Of the taker's fee; null where the venue states none.")
    fee_exponent = RateField(null=True, blank=True)
    row_sha256 = RowHashField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["universe", "outcome"], name="one_order_book_per_universe_and_outcome")
        ]
        ordering = ["universe_id", "pk"]

    def __str__(self) -> str:
        return f"{self.universe}: book of {self.outcome}"
