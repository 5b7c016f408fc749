"""Polymarket: Gamma is its catalogue, the CLOB its order books."""

from markets.sources.polymarket.clob import Clob, TokenValues, WinningToken
from markets.sources.polymarket.gamma import Gamma
