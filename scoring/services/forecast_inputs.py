"""The inputs of the forecast leaderboards as numbers that tell whether stored ones are still right."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import Count, Max, Q, Sum

from agents.models import Elicitation, Forecast, ModelCall, Trade
from markets.models import Market
from scoring.models import ForecastScore, Leaderboard
from scoring.services.forecast_panels import Selection, asked_and_resolved, selection_families
from scoring.services.forecast_participation import refused_forecasts
from scoring.stored_json import to_json

FORMAT = 5
"""The format of stored leaderboards: those of an older one are computed anew, although their inputs are the same."""


def inputs_version(selection: Selection) -> dict[str, Any]:
    """Numbers and newest instants of an arm's inputs, as JSON: as long as they are the same, so are its leaderboards.

    Numbers alone would miss an outcome that was reversed.
    """
    forecasts = Forecast.objects.filter(arm=selection.arm)
    if selection.methodology:
        forecasts = forecasts.filter(methodology=selection.methodology)
    tasks = selection.elicitations()
    calls = ModelCall.objects.filter(elicitation__in=tasks)
    bets = Trade.objects.filter(kind=Trade.Kind.BUY)
    resolved_bets = bets.filter(market__status=Market.Status.RESOLVED)
    scores = ForecastScore.objects.filter(forecast__in=forecasts.order_by())
    number = Count("pk")
    families = list(selection_families(selection).order_by("pk").values_list("slug", "display_name", "external"))
    inputs = {
        "format": FORMAT,
        "families": families,
        "categories": _category_inputs(selection, families),
        "resolved": asked_and_resolved(selection).aggregate(number=number, newest=Max("question__resolved_at"))
        | scores.aggregate(forecasts=number, scored_at=Max("scored_at")),
        "forecasts": forecasts.aggregate(number=number, newest=Max("made_at")),
        "asked": tasks.aggregate(number=number, completed=Count("pk", filter=Q(status=Elicitation.Status.COMPLETED))),
        "calls": calls.aggregate(number=number, cost=Sum("cost_usd")),
        "bets": bets.aggregate(number=number, newest=Max("executed_at")),
        "resolved_bets": resolved_bets.aggregate(number=number, newest=Max("market__resolved_at")),
    }
    return to_json(inputs)


def _category_inputs(selection: Selection, families: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The numbers and newest instants of the inputs of each category's leaderboard, by category."""
    inputs: dict[str, dict[str, Any]] = defaultdict(lambda: {"format": FORMAT, "families": families})
    resolved = asked_and_resolved(selection).order_by().values_list("question__category")
    for category, number, newest in resolved.annotate(Count("pk"), Max("question__resolved_at")):
        inputs[category]["resolved"] = (number, newest)
    scores = ForecastScore.objects.filter(forecast__arm=selection.arm).order_by()
    if selection.methodology:
        scores = scores.filter(forecast__methodology=selection.methodology)
    by_category = scores.values_list("forecast__question__category")
    for category, number, newest in by_category.annotate(Count("pk"), Max("scored_at")):
        inputs[category]["scores"] = (number, newest)
    refused = refused_forecasts(selection, "entry__question__category")
    for (_, category), number in sorted(refused.items()):
        inputs[category].setdefault("refused", []).append(number)
    return dict(inputs)


def is_current(leaderboard: Leaderboard, inputs: Mapping[str, Any]) -> bool:
    """True if a stored leaderboard was computed from these inputs, or from those of its category."""
    own = inputs["categories"].get(leaderboard.category) if leaderboard.category else inputs
    return leaderboard.report.get("inputs") == own


def is_fitted(leaderboard: Leaderboard | None, inputs: Mapping[str, Any]) -> bool:
    """True if the slow fits of a stored leaderboard are of these inputs."""
    return leaderboard is not None and leaderboard.report.get("fitted") == inputs["resolved"]
