"""Leaderboards as of a past instant with the reports of the current ones, computed and not stored."""

from datetime import datetime

from scoring.constants import FORECAST, TRADING
from scoring.models import Leaderboard
from scoring.services.bet_calibration import bet_calibration
from scoring.services.forecast_leaderboards import forecast_leaderboard
from scoring.services.forecast_panels import Selection, family_names, resolved_entries
from scoring.services.forecasts_and_trades import family_figures, forecast_bets, stake_points
from scoring.services.history_backfill import entries_at
from scoring.services.trading_leaderboards import trading_leaderboard


def past_forecast_leaderboard(arm: str, methodology: str, category: str, *, at: datetime) -> Leaderboard:
    """The forecast leaderboard over the questions that had resolved, with the bets that had been made by then."""
    selection = Selection(arm, methodology, at)
    resolved = [entry for entry in resolved_entries(selection) if category in ("", entry.category)]
    externals = family_names(selection, external=True)
    report = forecast_leaderboard(resolved, family_names(selection), externals).report
    bets = forecast_bets(arm, methodology, at=at)
    stakes = {"forecasts_and_trades": family_figures(bets), "stakes": stake_points(bets)}
    key = {"protocol": FORECAST, "arm": arm, "methodology": methodology, "category": category}
    return Leaderboard(**key, entries=entries_at(selection, category), report=report | stakes)


def past_trading_leaderboard(methodology: str, *, at: datetime) -> Leaderboard:
    """The trading leaderboard by the snapshots and the resolved bets of then."""
    entries, report = trading_leaderboard(methodology, at=at)
    calibration = bet_calibration(methodology, at=at)
    return Leaderboard(
        protocol=TRADING, methodology=methodology, entries=entries, report=report | {"calibration": calibration}
    )
