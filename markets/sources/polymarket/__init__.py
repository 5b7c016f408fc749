"""Polymarket: Gamma names the markets, the CLOB prices them."""

from markets.sources.polymarket.clob import Books, Clob, Midpoints, Winner
from markets.sources.polymarket.gamma import Gamma
from markets.sources.polymarket.rows import parse_event, parse_market

__all__ = ["Books", "Clob", "Gamma", "Midpoints", "Winner", "parse_event", "parse_market"]
