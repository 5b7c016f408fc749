"""Kalshi: one API for catalogue, quotes and results."""

from markets.sources.kalshi.client import Kalshi
from markets.sources.kalshi.parsing import parse_event, parse_market
