"""Paired differences between the conditions of one model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.selection import PageSelection
from scoring.selectors.claims import LEAST_EVENTS
from scoring.selectors.competition import CompetitionIndex, competition_index
from scoring.selectors.condition_differences import (
    ConditionDifference,
    condition_figures,
    effects,
)


@require_safe
def conditions(request: HttpRequest) -> HttpResponse:
    """What prices, evidence and search add, model by model."""
    competition = competition_index()
    numbers, stored = condition_figures(), competition.conditions
    board, pairs, rows = stored.board(), {}, []
    for row in sorted(numbers.differences, key=lambda row: board not in row.pair):
        pairs["-".join(row.pair)] = " – ".join(map(stored.label, row.pair))
    for row in numbers.differences:
        labels = stored.label(row.condition_a), stored.label(row.condition_b)
        rows.append((competition.by_slug[row.family], *labels, row))
    selection = PageSelection.from_request(request, {"pair": list(pairs) or [""]})
    of_pair = [row for row in numbers.differences if "-".join(row.pair) == selection["pair"] and row.bears_claim]
    context = {
        "selection": selection,
        "filters": selection.filter_links([("Conditions", "pair", pairs)]),
        "effects": effects(numbers.differences, stored),
        "rows": rows,
        "least_events": LEAST_EVENTS,
        "at": numbers.at,
        "figure": _difference_figure(of_pair, competition, selection.suffix, numbers.at) if of_pair else None,
    }
    return TemplateResponse(request, "conditions.html", context)


def _difference_figure(
    rows: Sequence[ConditionDifference], competition: CompetitionIndex, query: str, at: datetime
) -> Figure:
    entries = []
    for row in sorted(rows, key=lambda row: row.difference):
        entry = {"display_name": competition.by_slug[row.family].display_name, "family": row.family}
        entries.append({**entry, "difference": row.difference, "interval": row.interval})
    chart = interval_chart(
        entries, "difference", competition.by_slug, interval="interval", x_title="Difference in Brier score",
        unit="signed_score", baselines={"No difference": 0.0},
    )  # fmt: skip
    first, second = map(competition.conditions.label, rows[0].pair)
    title = f"Each model’s Brier score {first}, less its Brier score {second}."
    note = f"Left of the line a model forecasts better {first}. 95 % intervals, corrected as p in the table is."
    return Figure("differences", title, chart, note, at=at, query=query)
