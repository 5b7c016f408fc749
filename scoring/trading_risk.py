"""Luck and risk of the traders as pages and API read them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scoring.constants import TRADING
from scoring.models import Leaderboard

SIGNIFICANCE = 0.05


class RiskFigures(NamedTuple):
    """The entries of a trading leaderboard with their figures of luck and risk, and the calendar weeks behind them."""

    rows: Sequence[Mapping[str, Any]]
    weeks: int
    at: datetime | None


def risk_figures(methodology: str, *, at: datetime | None = None) -> RiskFigures:
    """The figures of the stored leaderboard, or computed for a past instant."""
    if at is not None:
        from scoring.services.trading_leaderboards import board_risk, trading_leaderboard

        contents = trading_leaderboard(methodology, at=at)
        return _figures(contents.entries, board_risk(contents, methodology, at), at)
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    return _figures(*stored.values_list("entries", "report__risk", "computed_at").first() or ([], None, None))


def _figures(entries: Sequence[Mapping[str, Any]], risk: Mapping[str, Any] | None, at: datetime | None) -> RiskFigures:
    if risk is None:
        return RiskFigures([], 0, at)
    return RiskFigures([{**entry, **risk["families"][entry["family"]]} for entry in entries], risk["weeks"], at)
