"""The models against the market: the widest disagreements on open questions, and how often each model was closer."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from textwrap import shorten
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.models import Family
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import number, page_url, single_line
from arena_site.pages.selection import PageSelection, condition_labels
from arena_site.pages.stored_boards import stored_boards
from foundation.bulk import subset
from foundation.clock import present
from markets.models import Question
from scoring.constants import ALL_METHODOLOGIES, FORECAST, LEAST_COMPARED
from scoring.selectors.competition import CompetitionIndex, competition_index
from scoring.selectors.market_disagreements import MarketDisagreement, closeness, widest_disagreements

SHOWN, DRAWN = 15, 10
"""Disagreements in the table, and those in the chart."""
NAME_LENGTH = 50
NOTE = (
    "Filled: the model’s probability; hollow: the market’s price, brought to a sum of 1 where options exclude each "
    "other. Of each question the option that is furthest apart, on the last day it was asked."
)


@require_safe
def disagreements(request: HttpRequest) -> HttpResponse:
    """Questions by disagreement with the market, of one model or of all."""
    competition = competition_index()
    conditions = competition.conditions
    models = list(map(attrgetter("slug"), competition.ranked_families))
    selection = PageSelection.from_request(request, {"model": ["", *models], "arm": conditions.names() or [""]})
    rows = widest_disagreements(selection["arm"], selection["model"])
    boards = stored_boards(protocol=FORECAST, methodology=ALL_METHODOLOGIES, category="")
    arms = condition_labels(conditions, selection, boards.arms)
    names, records = subset(competition.names, models), closeness(selection["arm"])
    context = {
        "selection": selection,
        "filters": selection.filter_links(
            [("Model", "model", {"": "all", **names}), ("Prompt condition", "arm", arms)],
        ),
        "figure": _figure(rows, selection, competition),
        "phrase": conditions.phrase(selection["arm"]),
        "rows": rows[:SHOWN],
        "number": len(rows),
        "questions": _questions(rows[:SHOWN]),
        "records": [(competition.by_slug[slug], records[slug]) for slug in models if slug in records],
        "least": LEAST_COMPARED,
        "families": competition.by_slug,
        "query": selection.suffix.replace("model=", "family="),
    }
    return TemplateResponse(request, "disagreements.html", context)


def _questions(rows: Sequence[MarketDisagreement]) -> Mapping[int, Question]:
    """The questions of the rows, by id."""
    return Question.objects.only("text", "status").in_bulk({row.question for row in rows})


def _figure(
    rows: Sequence[MarketDisagreement], selection: PageSelection, competition: CompetitionIndex
) -> Figure | None:
    """The chart of the widest disagreements without an outcome."""
    if not rows:
        return None
    families, minute = competition.by_slug, present().replace(second=0, microsecond=0)
    title = (
        f"{_subject(selection, families)} from the market’s prices by up to"
        f" {number(100 * rows[0].gap, 0)} points on questions without an outcome,"
        f" {competition.conditions.phrase(selection['arm'])}."
    )
    drawn = rows[:DRAWN]
    chart = interval_chart(
        _chart_rows(drawn, _questions(drawn), families), "probability", families, interval="interval",
        x_title="Probability of the option", unit="fraction", mark="price", left_edge=470,
    )  # fmt: skip
    return Figure("largest", title, chart, NOTE, at=minute, query=selection.suffix)


def _subject(selection: PageSelection, families: Mapping[str, Family]) -> str:
    return f"{families[selection['model']].display_name} differs" if selection["model"] else "Models differ"


def _chart_rows(
    rows: Sequence[MarketDisagreement], questions: Mapping[int, Question], families: Mapping[str, Family]
) -> list[dict[str, Any]]:
    drawn = []
    for row in rows:
        name = f"{families[row.family].display_name}: {single_line(questions[row.question].text)}"
        row_values = {
            "display_name": shorten(name, NAME_LENGTH, placeholder="…"),
            "family": row.family,
            "probability": row.probability,
            "price": row.price,
            "interval": sorted((row.probability, row.price)),
            "href": page_url("question", row.question),
        }
        drawn.append(row_values)
    return drawn
