"""Admin of markets, prices, universes, questions, alerts and runs."""

from markets.admin import records, runs
