"""Kalshi: one API names the markets, quotes them and says how they ended."""

from markets.sources.kalshi.client import Kalshi
from markets.sources.kalshi.rows import FINAL, NOBODY_WON, parse_event, parse_market

__all__ = ["FINAL", "NOBODY_WON", "Kalshi", "parse_event", "parse_market"]
