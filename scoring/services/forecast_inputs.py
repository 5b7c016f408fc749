"""The inputs of the forecast leaderboards: participation, and numbers that tell whether stored ones are right."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, Sum

from agents.letters import published
from agents.models import Elicitation, Forecast, ModelCall, RefusedForecast, Release, Trade
from cohorts.conditions import stored_conditions
from cohorts.models import Cohort
from markets.models import Market, Question
from scoring.leaderboard_keys import arms_asked, to_json
from scoring.models import Leaderboard
from scoring.selectors.forecast_panels import Selection, asked_and_resolved, selection_families

FORMAT = 13
"""The format of stored leaderboards and fits: older ones are computed anew, although their inputs are the same."""
FIT_INTERVAL = timedelta(hours=20)
"""The slow fits are repeated daily: less than a day, since a daily job may begin a little earlier than the last."""
NEW_SHARE = 0.01
"""The share of new forecasts up to which fits are left until the next day: they would hardly move."""
MANY_FORECASTS = 10_000
"""Forecasts of an arm from which fits wait: of fewer they take less than 0.4 s."""


def inputs_version(selection: Selection) -> dict[str, Any]:
    """Numbers and newest instants of an arm's inputs, as JSON: as long as they are the same, so are its leaderboards.

    Numbers alone would miss an outcome that was reversed.
    """
    tasks, forecasts = selection.elicitations(), _forecasts(selection)
    bets = Trade.objects.filter(kind=Trade.Kind.BUY)
    resolved_bets = bets.filter(market__status=Market.Status.RESOLVED)
    number = Count("pk")
    families = list(selection_families(selection).order_by("pk").values_list("slug", "display_name", "external"))
    categories: dict[str, dict[str, Any]] = defaultdict(lambda: {"format": FORMAT, "families": families})
    resolved_by_category, resolved = _resolved(selection)
    for category, numbers in resolved_by_category.items():
        categories[category] |= numbers
    refused = refused_forecasts(selection, "entry__question__category")
    for (_, category), refusals in sorted(refused.items()):
        categories[category].setdefault("refused", []).append(refusals)
    inputs: dict[str, Any] = {
        "families": families,
        "categories": categories,
        "resolved": resolved,
        "forecasts": forecasts.aggregate(number=number, newest=Max("made_at")),
        "asked": tasks.aggregate(number=number, completed=Count("pk", filter=Q(status=Elicitation.Status.COMPLETED))),
        "calls": _calls(selection),
        "bets": bets.aggregate(number=number, newest=Max("executed_at")),
        "releases": release_dates(),
        "resolved_bets": resolved_bets.aggregate(number=number, newest=Max("market__resolved_at")),
    }
    if voided := Cohort.objects.exclude(voided_at=None).count():  # their trades no longer stand beside forecasts
        inputs["voided_cohorts"] = {"number": voided}
    if compares_conditions(selection):
        inputs["other_arms"] = {}
        for arm in arms_asked():
            if arm != selection.arm:
                other = Selection(arm)
                _, of_arm = _resolved(other)
                inputs["other_arms"][arm] = {"resolved": of_arm, "calls": _calls(other)}
    return to_json(inputs)


def _forecasts(selection: Selection) -> QuerySet[Forecast]:
    """The forecasts of a selection, whatever has resolved."""
    forecasts = Forecast.objects.filter(arm=selection.arm)
    return forecasts.filter(methodology=selection.methodology) if selection.methodology else forecasts


def _resolved(selection: Selection) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """Numbers of what has resolved, by category and over all of them."""
    entries = asked_and_resolved(selection).order_by().values_list("question__category")
    resolved = {name: counts for name, *counts in entries.annotate(Count("pk"), Max("question__resolved_at"))}
    # Forecasts, not their scores: an index holds what is counted. 10,700 take 4 ms on SQLite instead of 18.
    answered = _forecasts(selection).filter(question__status=Question.Status.RESOLVED).order_by()
    answers = dict(answered.values_list("question__category").annotate(Count("question")))
    excluded = dict(answered.exclude(excluded="").values_list("question__category").annotate(Count("question")))
    by_category: dict[str, dict[str, Any]] = defaultdict(dict)
    for name, numbers in (("resolved", resolved), ("forecasts", answers), ("excluded", excluded)):
        for category, counts in numbers.items():
            by_category[category][name] = counts
    return by_category, {
        "format": FORMAT,
        "number": sum(number for number, _ in resolved.values()),
        "newest": max((newest for _, newest in resolved.values()), default=None),
        "forecasts": sum(answers.values()),
        **({"excluded": sum(excluded.values())} if excluded else {}),
    }


def _calls(selection: Selection) -> dict[str, Any]:
    """The number and cost of a selection's calls."""
    calls = published(ModelCall.objects.filter(elicitation__in=selection.elicitations()))
    return calls.aggregate(number=Count("pk"), cost=Sum("cost_usd"))


def compares_conditions(selection: Selection) -> bool:
    """True if the selection's report compares the conditions, which rests on the forecasts of all arms."""
    return not selection.methodology and selection.arm == stored_conditions().board()


def release_dates() -> list[Any]:
    """The dates of all releases of models, which the scores by release are shown by."""
    releases = Release.objects.filter(family__external=False).order_by("pk")
    return list(releases.values_list("pk", "released_on", "knowledge_cutoff", "declared_cutoff"))


def is_current(category: str, stored: Any, inputs: Mapping[str, Any]) -> bool:
    """True if the stored inputs of a category's leaderboard are these inputs, or those of its category."""
    return bool(stored == (inputs["categories"].get(category) if category else inputs))


def is_fitted(leaderboard: Leaderboard | None, inputs: Mapping[str, Any]) -> bool:
    """True if the slow fits of a stored leaderboard are of these inputs."""
    return leaderboard is not None and leaderboard.report.get("fitted") == inputs["resolved"]


def is_fit_due(leaderboard: Leaderboard | None, inputs: Mapping[str, Any], *, at: datetime) -> bool:
    """True if the slow fits are to be repeated: their inputs have changed, and by more than can wait for the next day.

    A reversal does not wait: it adds no forecast, but changes what the fits rest on.
    """
    fitted = leaderboard.report.get("fitted") if leaderboard else None
    if leaderboard is None or not fitted or fitted.get("format") != FORMAT:
        return True
    if fitted == inputs["resolved"]:
        return False
    new = inputs["resolved"]["forecasts"] - fitted["forecasts"]
    can_wait = fitted["forecasts"] >= MANY_FORECASTS and 0 < new <= NEW_SHARE * fitted["forecasts"]
    return not can_wait or abs(at - datetime.fromisoformat(leaderboard.report["fitted_at"])) >= FIT_INTERVAL


NO_PARTICIPATION = {"cost_usd": "0.000000", "declined": 0, "refused": 0, "asked": 0}


def participation_by_family(selection: Selection) -> dict[str, dict[str, Any]]:
    """The cost of each family's forecasts and how often it was asked, declined and was refused, by slug."""
    tasks = selection.elicitations()
    calls = published(ModelCall.objects.filter(elicitation__in=tasks))
    participation: dict[str, dict[str, Any]] = defaultdict(NO_PARTICIPATION.copy)
    by_slug = tasks.values_list("family__slug")
    for slug, tasks_of_family, declined in by_slug.annotate(Count("pk"), declined=Count("pk", filter=Q(declined=True))):
        participation[slug] |= {"asked": tasks_of_family, "declined": declined}
    for slug, cost in calls.order_by().values_list("elicitation__family__slug").annotate(Sum("cost_usd")):
        participation[slug]["cost_usd"] = f"{cost:.6f}"
    for (slug, _), refused in refused_forecasts(selection).items():
        participation[slug]["refused"] += refused
    return participation


def refused_forecasts(selection: Selection, by: str = "call__elicitation__batch__arm") -> Counter[tuple[str, str]]:
    """The number of refused forecasts by family and another column."""
    of_tasks = {"call__elicitation__in": selection.elicitations(), "call__result__in": ModelCall.READ}
    refused = published(RefusedForecast.objects.filter(**of_tasks))
    rows = refused.order_by().values_list("call__elicitation__family__slug", by).annotate(Count("pk"))
    return Counter({(slug, column): count for slug, column, count in rows})
