"""Scores against the cost of the calls behind them: a part of the reports of forecast leaderboards."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

from django.db.models import Count, Q, Sum

from agents.letters import published
from agents.models import Forecast, ModelCall
from foundation.bulk import mappings_by, subset
from scoring.constants import MARKET, SIGNIFICANCE
from scoring.leaderboard_keys import ranking_interval, ranking_score
from scoring.selectors.forecast_panels import ResolvedEntry, Selection
from scoring.services.time_report import Ranking

POINT = 0.01
"""The difference in the Brier score whose price is told."""
TaskKey = tuple[int, int, int]
"""A question set, the number of a batch in it, and a release."""


class AnswerUsage(NamedTuple):
    """What an answer to one question took: the calls for its batch, divided by the answers that they gave."""

    cost_usd: float
    search_cost_usd: float
    latency_ms: float
    tokens_input: float
    tokens_output: float


COLUMNS = AnswerUsage._fields
"""The columns of a call that are added up."""


def cost_report(
    resolved: Sequence[ResolvedEntry], usage: Mapping[TaskKey, AnswerUsage], rank: Ranking
) -> dict[str, Any]:
    """The scores of the forecasts whose cost the gateway stated, what they cost, and the frontier of both.

    Scores and costs are of the same forecasts. A question asked on several days counts once, in both.
    """
    entries = []
    for entry in resolved:
        forecasts = {}
        for name, vector in entry.forecasts.items():
            if (*entry.batch, entry.releases[name]) in usage:
                forecasts[name] = vector
        entries.append(replace(entry, forecasts=forecasts, external_forecasts={}))
    contents = rank(entries)
    rows = []
    for row in contents.entries:
        if not row["reference"] and ranking_score(row) is not None:
            rows.append(_row(row, entries, resolved, usage))
    market = mappings_by("forecaster", contents.entries).get(MARKET)
    frontier = _frontier(rows)
    for row in rows:
        row["efficient"] = row["forecaster"] in frontier
    return {
        "rows": rows,
        "steps": _steps(rows, frontier, contents.report["pairs"]),
        "market": market and market["brier"],
        "events": len({entry.event for entry in entries if entry.forecasts}),
    }


def answer_usage(selection: Selection) -> dict[TaskKey, AnswerUsage]:
    """Cost, time and tokens of an answer by batch and release, where the gateway stated each billed cost."""
    key = ("elicitation__batch__question_set", "elicitation__batch__number", "elicitation__release")
    tasks = selection.elicitations()
    forecasts = Forecast.objects.filter(elicitation__in=tasks).order_by().values_list(*key)
    answers = {row[:3]: row[3] for row in forecasts.annotate(Count("pk"))}
    is_stated = Q(cost_source=ModelCall.CostSource.STATED)
    calls = published(ModelCall.objects.filter(elicitation__in=tasks)).order_by().values_list(*key)
    counts = {
        "stated_costs": Count("pk", filter=is_stated),
        "other_costs": Count("pk", filter=Q(cost_usd__gt=0) & ~is_stated),
    }
    usage = {}
    for row in calls.annotate(**counts, **{f"sum_{column}": Sum(column) for column in COLUMNS}):
        task, (stated_costs, other_costs), sums = row[:3], row[3:5], row[5:]
        if task in answers and stated_costs and not other_costs:
            usage[task] = AnswerUsage(*(float(total or 0) / answers[task] for total in sums))
    return usage


def _row(
    row: Mapping[str, Any],
    entries: Sequence[ResolvedEntry],
    resolved: Sequence[ResolvedEntry],
    usage: Mapping[TaskKey, AnswerUsage],
) -> dict[str, Any]:
    """A model's score and the means of what an answer took: over the days of a question, then over questions."""
    name = row["forecaster"]
    by_question: dict[int, list[AnswerUsage]] = defaultdict(list)
    for entry in entries:
        if name in entry.forecasts:
            by_question[entry.question].append(usage[*entry.batch, entry.releases[name]])
    means = {}
    for place, column in enumerate(COLUMNS):
        of_questions = []
        for answers in by_question.values():
            of_questions.append(fmean([answer[place] for answer in answers]))
        means[column] = fmean(of_questions)
    return {
        **subset(row, ("forecaster", "display_name", "n", "forecasts", "coverage", "ranked_by")),
        "score": ranking_score(row),
        "score_ci": ranking_interval(row),
        "brier": row["brier"],
        "seconds": means.pop("latency_ms") / 1000,
        **means,
        "without_cost": sum(name in entry.forecasts for entry in resolved) - row["forecasts"],
    }


def _frontier(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The models that no other beats on both score and cost, the cheapest first.

    Another beats a model that is at least as good and as cheap, and better or cheaper.
    """
    frontier, best = [], float("inf")
    for row in sorted(rows, key=lambda row: (row["cost_usd"], row["score"])):
        if row["score"] < best:
            frontier.append(row["forecaster"])
            best = row["score"]
    return frontier


def _steps(
    rows: Sequence[Mapping[str, Any]], frontier: Sequence[str], pairs: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Between neighbours on the frontier: what 0.01 less of the Brier score costs for a question.

    0.01 (c_b - c_a) / (s_a - s_b), with costs c and scores s of the cheaper model a and the better model b. The
    difference of the scores has a paired test, corrected for all pairs of models.
    """
    by_name = mappings_by("forecaster", rows)
    tests = {frozenset((pair["first"], pair["second"])): pair["p_holm"] for pair in pairs}
    steps = []
    for place in range(1, len(frontier)):
        cheaper, better = by_name[frontier[place - 1]], by_name[frontier[place]]
        dollars, gain = better["cost_usd"] - cheaper["cost_usd"], cheaper["score"] - better["score"]
        p = tests.get(frozenset((cheaper["forecaster"], better["forecaster"])))
        steps.append(
            {
                "cheaper": cheaper["forecaster"],
                "better": better["forecaster"],
                "extra_usd": dollars,
                "gain": gain,
                "usd_per_point": POINT * dollars / gain,
                "p_holm": p,
                "is_significant": p is not None and p < SIGNIFICANCE,
            }
        )
    return steps
