"""Kalshi: one API for catalogue, quotes and results."""

from markets.sources.kalshi.client import Kalshi
from markets.sources.kalshi.parsing import FINAL, NOBODY_WON, parse_event, parse_market
