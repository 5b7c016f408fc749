"""Where a market stands at its venue."""

import re

from markets.models import Market

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,299}")
"""What an address may be made of: a venue's slug is text from outside."""


def venue_address(market: Market) -> str | None:
    """The market's page at its venue; None where its slug could be anything but a part of a path."""
    if market.source == Market.Source.KALSHI:
        series = market.external_id.partition("-")[0].lower()
        return f"https://kalshi.com/markets/{series}" if SAFE.fullmatch(series) else None
    return f"https://polymarket.com/market/{market.slug}" if SAFE.fullmatch(market.slug) else None
