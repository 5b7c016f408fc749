"""Admin of markets, prices, universes and questions."""

from markets.admin import records
