"""Scores against the cost of the calls behind them."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.charts.curves import Curve, single_point
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import line_chart
from arena_site.pages.charts.markers import REFERENCE_COLORS
from arena_site.pages.filters import cost, count
from arena_site.pages.report_selection import SelectedPart, listing, selected_part
from scoring.constants import MARKET

QUESTIONS = 1_000
"""Costs are shown for so many questions."""
NOTE = (
    "Each marker is a model: its score with the 95 % interval over events, and the gateway’s own cost of the calls"
    " behind it. Between the models that the dashed line joins, better is dearer; none of the others beats one of them"
    " on both."
)


@require_safe
def costs(request: HttpRequest) -> HttpResponse:
    """The efficient frontier, what a better score costs, and what an answer takes."""
    page = selected_part(request, "costs")
    figures = page.figures
    rows = page.competition.with_families(figures["rows"], "forecaster")
    context = {
        "selection": page.selection,
        "computed_at": page.computed_at,
        "sentences": _sentences(page),
        "rows": sorted(rows, key=lambda row: row[1]["cost_usd"]),
        "steps": [(page.name(step["cheaper"]), page.name(step["better"]), step) for step in figures["steps"]],
        "figure": _figure(page),
        "questions": QUESTIONS,
    }
    return TemplateResponse(request, "costs.html", context)


def _sentences(page: SelectedPart) -> list[str]:
    figures = page.figures
    frontier = sorted((row for row in figures["rows"] if row["efficient"]), key=lambda row: row["cost_usd"])
    if not frontier:
        return []
    models = [f"{page.name(row['forecaster'])} ({cost(QUESTIONS * row['cost_usd'])})" for row in frontier]
    number = f"{count(len(frontier))} of {count(len(figures['rows']))} models"
    be = "is" if len(frontier) == 1 else "are"
    sentences = [
        f"By the mean scores so far {number} {be} beaten by no other on both score and cost {page.condition}:"
        f" {listing(models)} for 1,000 questions.{_tested(figures['steps'])}"
    ]
    prices = []
    for step in figures["steps"]:
        doubt = "" if step["is_significant"] else " (no difference of their scores is shown)"
        ways = f"from {page.name(step['cheaper'])} to {page.name(step['better'])}{doubt}"
        prices.append(f"{cost(QUESTIONS * step['usd_per_point'])} {ways}")
    if prices:
        sentences.append(f"For 1,000 questions 0.01 less of the Brier score costs {listing(prices)}.")
    return sentences


def _tested(steps: Sequence[Mapping[str, Any]]) -> str:
    """The sentence on the corrected tests between neighbours on the frontier."""
    wins = sum(step["is_significant"] for step in steps)
    if not steps:
        return ""
    verb = "is" if wins <= 1 else "are"
    step = "step" if len(steps) == 1 else f"{count(len(steps))} steps"
    return f" Of the {step} to a dearer model {count(wins) if wins else 'none'} {verb} shown to lower the score."


def _figure(page: SelectedPart) -> Figure | None:
    """The score over the cost of each model, with the frontier; a free model stands a tenth left of the cheapest."""
    rows = page.figures["rows"]
    paid = list(filter(None, map(itemgetter("cost_usd"), rows)))
    if not paid:
        return None
    places = {row["forecaster"]: QUESTIONS * (row["cost_usd"] or min(paid) / 10) for row in rows}
    positions = sorted(set(places.values()))
    frontier: dict[float, float] = {}
    for row in rows:
        if row["efficient"]:
            frontier[places[row["forecaster"]]] = row["score"]
    curves = [Curve("Frontier", REFERENCE_COLORS[MARKET], list(map(frontier.get, positions)), dashed=True)]
    for row in rows:
        place, family = positions.index(places[row["forecaster"]]), page.competition.by_slug[row["forecaster"]]
        curves.append(single_point(family.display_name, family, place, len(positions), row["score"], row["score_ci"]))
    chart = line_chart(positions, curves, y_title="Brier score (0 is best)", axis="cost", unit="score")
    assert chart is not None, "there are scores"
    title = f"Each model’s Brier score by its cost, {page.condition}."
    source = f"{count(sum(row['forecasts'] for row in rows))} forecasts"
    return Figure("score-by-cost", title, chart, NOTE, source=source, **page.files)
