"""Leaderboards as of a past instant: computed on request, and cached for as long as their inputs are the same."""

from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Sum

from agents.models import Forecast, ModelCall
from scoring.constants import FORECAST, TRADING
from scoring.leaderboard_keys import arms_asked, cached_by_inputs, to_json
from scoring.models import Leaderboard
from scoring.services.bet_calibration import bet_calibration
from scoring.services.condition_differences import condition_report
from scoring.services.forecast_inputs import FORMAT, NO_PARTICIPATION, release_dates
from scoring.services.forecast_panels import (
    Selection,
    asked_and_resolved,
    family_names,
    of_category,
    resolved_entries,
    selection_families,
)
from scoring.services.forecast_ranking import forecast_leaderboard
from scoring.services.forecasts_and_trades import family_figures, forecast_bets, stake_points
from scoring.services.market_record import market_record
from scoring.services.report_parts import report_parts
from scoring.services.scored_bets import past_scores_version
from scoring.services.trading_leaderboards import LeaderboardContents


def past_forecast_contents(selection: Selection, category: str = "") -> LeaderboardContents:
    """The leaderboard over the questions that had resolved by the selection's instant; slow fits and costs are null."""

    def compute() -> Any:
        resolved = of_category(resolved_entries(selection), category)
        externals = family_names(selection, external=True)
        families = family_names(selection)
        entries, report = forecast_leaderboard(resolved, families, externals)
        if not category:
            report |= market_record(resolved, families)
        return to_json({"entries": [entry | dict.fromkeys(NO_PARTICIPATION) for entry in entries], "report": report})

    return LeaderboardContents(**cached_by_inputs("past-forecasts", _forecast_inputs(selection, category), compute))


def past_forecast_leaderboard(arm: str, methodology: str, category: str, *, at: datetime) -> Leaderboard:
    """The forecast leaderboard over the questions that had resolved, with the bets that had been made by then."""
    contents = past_forecast_contents(Selection(arm, methodology, at), category)
    bets = forecast_bets(arm, methodology, at=at)
    stakes = {"forecasts_and_trades": family_figures(bets), "stakes": stake_points(bets)}
    key = {"protocol": FORECAST, "arm": arm, "methodology": methodology, "category": category}
    return Leaderboard(**key, entries=contents.entries, report=contents.report | stakes)


def past_report_parts(selection: Selection) -> dict[str, Any]:
    """The scores by days to the close, by cost and by release, over the questions that had resolved.

    Costs and dates of releases are those known now.
    """
    cost = ModelCall.objects.filter(elicitation__in=selection.elicitations()).aggregate(Count("pk"), Sum("cost_usd"))
    forecasts = Forecast.objects.counted().filter(arm=selection.arm, made_at__lte=selection.until)
    inputs = [_forecast_inputs(selection, ""), cost, release_dates(), forecasts.count()]

    def compute() -> Any:
        return to_json(report_parts(selection, resolved_entries(selection), family_names(selection)))

    parts: dict[str, Any] = cached_by_inputs("past-report-parts", inputs, compute)
    return parts


def past_condition_report(at: datetime) -> dict[str, Any]:
    """The comparison of the conditions over the questions that had resolved; samples cost what is known now."""
    cost = ModelCall.objects.filter(elicitation__sample__gt=1).aggregate(Count("pk"), Sum("cost_usd"))
    inputs = [[_forecast_inputs(Selection(arm, until=at), "") for arm in arms_asked()], cost]
    report: dict[str, Any] = cached_by_inputs("past-conditions", inputs, lambda: to_json(condition_report(at=at)))
    return report


def past_bet_calibration(methodology: str, *, at: datetime) -> Leaderboard:
    """A trading leaderboard that reports the calibration of the bets that had resolved, and nothing else."""
    inputs = past_scores_version(methodology, at)
    report = cached_by_inputs("past-bets", inputs, lambda: to_json(bet_calibration(methodology, at=at)))
    return Leaderboard(protocol=TRADING, methodology=methodology, entries=[], report={"calibration": report})


def _forecast_inputs(selection: Selection, category: str) -> Any:
    """The inputs of a past leaderboard, as numbers and newest changes: a late forecast or a reversal changes them."""
    entries = asked_and_resolved(selection).order_by()
    forecasts = Forecast.objects.counted().resolved().filter(arm=selection.arm).order_by()
    if selection.methodology:
        forecasts = forecasts.filter(methodology=selection.methodology)
    if selection.until is not None:
        forecasts = forecasts.filter(question__resolved_at__lte=selection.until)
    if category:
        entries = entries.filter(question__category=category)
        forecasts = forecasts.filter(question__category=category)
    changes = {name: Max(f"question__{name}") for name in ("resolved_at", "updated_at")}
    return {
        "format": FORMAT,
        "selection": [selection.arm, selection.methodology, selection.since, category],
        "families": list(selection_families(selection).order_by("pk").values_list("slug", "display_name", "external")),
        "entries": entries.aggregate(number=Count("pk"), newest=Max("pk"), **changes),
        "forecasts": forecasts.aggregate(number=Count("question")),
    }
