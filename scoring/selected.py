"""The entries of whichever board a reader selects: one function for the page and the API."""

from datetime import datetime
from typing import Any

from cohorts.forecasting import PRICED
from scoring.models import Leaderboard
from scoring.services.boards import ALL_METHODOLOGIES, TRADING, category_entries, trading_entries
from scoring.services.forecast_boards import FORECAST
from scoring.services.forecast_panels import Selection
from scoring.services.past_boards import entries_at

PROTOCOLS = (TRADING, FORECAST)


def selected_entries(
    protocol: str,
    *,
    methodology: str = ALL_METHODOLOGIES,
    arm: str = "",
    category: str = "",
    at: datetime | None = None,
) -> list[dict[str, Any]]:
    """A board's entries: those on record where there are any, else computed for the category or the past instant."""
    if protocol == TRADING:
        arm = ""
        if at is not None:
            return trading_entries(methodology, at=at, category=category)
        if category:
            return category_entries(methodology, category)
    else:
        arm = arm or PRICED
        if at is not None:
            return entries_at(Selection(arm, methodology, at), category)
    boards = Leaderboard.objects.filter(protocol=protocol, methodology=methodology, arm=arm, category=category)
    entries: list[dict[str, Any]] = next(iter(boards.values_list("entries", flat=True)), [])
    return entries


def both_entries(
    methodology: str, category: str, at: datetime | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The entries of both protocols: in one statement where both boards are on record if they are anywhere."""
    if category or at is not None:
        trading, forecast = (
            selected_entries(protocol, methodology=methodology, category=category, at=at) for protocol in PROTOCOLS
        )
        return trading, forecast
    boards = Leaderboard.objects.filter(methodology=methodology, arm__in=("", PRICED), category="")
    found = {(protocol, arm): entries for protocol, arm, entries in boards.values_list("protocol", "arm", "entries")}
    return found.get((TRADING, ""), []), found.get((FORECAST, PRICED), [])
