"""Weekly universes: the frozen markets and prices that every agent of a run sees."""

from __future__ import annotations

from decimal import Decimal

from django.db import models

from markets.models.market import Market


class Universe(models.Model):
    """The markets of a week under one methodology, frozen by the week's first run. `sha256` is of the entries."""

    week_start = models.DateTimeField()
    methodology = models.CharField(max_length=20, help_text="The methodology's version.")
    frozen_at = models.DateTimeField()
    sha256 = models.CharField(max_length=64)
    market_block = models.TextField(help_text="The MARKETS block of every prompt of the run, byte for byte.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["week_start", "methodology"], name="one_universe_per_week_and_methodology")
        ]
        ordering = ["-week_start"]

    def __str__(self) -> str:
        return f"{self.week_start:%Y-%m-%d} {self.methodology}"


class UniverseEntry(models.Model):
    """A market in a universe, with the frozen price of each side."""

    universe = models.ForeignKey(Universe, on_delete=models.CASCADE, related_name="entries")
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="universe_entries")
    position = models.PositiveIntegerField()
    bettable = models.BooleanField(help_text="False if the market is listed only because an agent of the run holds it.")
    open = models.BooleanField(help_text="False if the market was closed at the freeze and awaited its resolution.")
    prices = models.JSONField(help_text="Side to decimal string.")
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
