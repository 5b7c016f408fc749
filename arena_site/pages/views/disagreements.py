"""The models against the market: the largest disagreements without an outcome, the largest wins and losses with one."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from textwrap import shorten
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Family
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import number, page_url, single_line
from arena_site.pages.freshness import requested_instant
from arena_site.pages.selection import PageSelection, condition_labels
from foundation.bulk import subset
from markets.models import Question
from scoring.constants import ALL_METHODOLOGIES, FORECAST
from scoring.models import Leaderboard
from scoring.selectors.competition import CompetitionIndex, competition_index
from scoring.selectors.market_disagreements import MarketDisagreement, MarketRecord, market_disagreements

SHOWN, DRAWN = 15, 10
"""Disagreements in the table, and those in the chart."""
NAME_LENGTH = 50
NOTE = (
    "Filled: the model’s probability; hollow: the market’s price, brought to a sum of 1 where options exclude each "
    "other. Of each question the option that is furthest apart, on the last day it was asked."
)


class DisagreementsPage(NamedTuple):
    """The contents of the page for a request: the record, the choices, the questions by id, and the chart."""

    record: MarketRecord
    selection: PageSelection
    questions: Mapping[int, Question]
    figure: Figure | None


@require_safe
def disagreements(request: HttpRequest) -> HttpResponse:
    """Questions by disagreement with the market, of one model or of all."""
    competition = competition_index()
    page = _page(request, competition)
    selection, families, record = page.selection, competition.by_slug, page.record
    conditions = competition.conditions
    boards = Leaderboard.objects.filter(protocol=FORECAST, methodology=ALL_METHODOLOGIES, category="")
    arms = condition_labels(conditions, selection, set(boards.values_list("arm", flat=True)))
    names = subset(competition.names, filter(None, selection.choices["model"]))
    context = {
        "as_of": requested_instant(request, timezone.now()),
        "whole": True,
        "filters": selection.filter_links(
            [("Model", "model", {"": "all", **names}), ("Prompt condition", "arm", arms)],
        ),
        "figure": page.figure,
        "phrase": conditions.phrase(selection["arm"]),
        "first": next(iter(record.unresolved), None),
        "number": len(record.unresolved),
        "shown": SHOWN,
        "open": record.unresolved[:SHOWN],
        "resolved": [("Largest wins", "wins", record.wins), ("Largest losses", "losses", record.losses)],
        "questions": page.questions,
        "families": families,
        "query": selection.suffix.replace("model=", "family="),
    }
    return TemplateResponse(request, "disagreements.html", context)


def _page(request: HttpRequest, competition: CompetitionIndex) -> DisagreementsPage:
    at, conditions = requested_instant(request, timezone.now()), competition.conditions
    models = list(map(attrgetter("slug"), competition.ranked_families))
    selection = PageSelection.from_request(request, {"model": ["", *models], "arm": conditions.names(at=at) or [""]})
    selection = selection.with_text("as_of", request.GET.get("as_of", ""))
    record = market_disagreements(selection["arm"], family=selection["model"], at=at)
    rows = [*record.unresolved[:SHOWN], *record.wins, *record.losses]
    questions = Question.objects.only("text", "status").in_bulk({row.question for row in rows})
    figure, minute = None, timezone.now().replace(second=0, microsecond=0)
    if record.unresolved:
        title = (
            f"{_subject(selection, competition.by_slug)} from the market’s prices by up to"
            f" {number(100 * record.unresolved[0].gap, 0)} points on questions without an outcome,"
            f" {conditions.phrase(selection['arm'])}."
        )
        chart_rows = _chart_rows(record.unresolved[:DRAWN], questions, competition.by_slug)
        chart = interval_chart(
            chart_rows, "probability", competition.by_slug, interval="interval", x_title="Probability of the option",
            unit="fraction", baselines={}, mark="price", left_edge=470,
        )  # fmt: skip
        figure = Figure("largest", title, chart, NOTE, at=at or minute, query=selection.suffix)
    return DisagreementsPage(record, selection, questions, figure)


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
