"""Leaderboard entries for a selection: one function for pages and API."""

from datetime import datetime
from typing import Any

from markets.prompt_conditions import PRICED
from scoring.constants import ALL_METHODOLOGIES, FORECAST, TRADING
from scoring.models import Leaderboard

PROTOCOLS = (TRADING, FORECAST)


def leaderboard_entries(
    protocol: str,
    *,
    methodology: str = ALL_METHODOLOGIES,
    arm: str = "",
    category: str = "",
    at: datetime | None = None,
) -> list[dict[str, Any]]:
    """The entries of a leaderboard: the stored ones if there are any, else computed for the category or the instant."""
    if protocol == TRADING:
        arm = ""
        if at is not None or category:
            from scoring.services.trading_leaderboards import category_entries, trading_entries
        if at is not None:
            return trading_entries(methodology, at=at, category=category)
        if category:
            return category_entries(methodology, category)
    else:
        arm = arm or PRICED
        if at is not None:
            from scoring.services.forecast_panels import Selection
            from scoring.services.history_backfill import entries_at

            return entries_at(Selection(arm, methodology, at), category)
    leaderboards = Leaderboard.objects.filter(protocol=protocol, methodology=methodology, arm=arm, category=category)
    entries: list[dict[str, Any]] = next(iter(leaderboards.values_list("entries", flat=True)), [])
    return entries


def entries_of_both_protocols(
    methodology: str, category: str, at: datetime | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The entries of both protocols; of the current leaderboards in one query."""
    if category or at is not None:
        trading, forecast = (
            leaderboard_entries(protocol, methodology=methodology, category=category, at=at) for protocol in PROTOCOLS
        )
        return trading, forecast
    leaderboards = Leaderboard.objects.filter(methodology=methodology, arm__in=("", PRICED), category="")
    stored = {
        (protocol, arm): entries for protocol, arm, entries in leaderboards.values_list("protocol", "arm", "entries")
    }
    return stored.get((TRADING, ""), []), stored.get((FORECAST, PRICED), [])
