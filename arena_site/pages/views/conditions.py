"""What the conditions add: paired differences between those of one model, and what samples tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import count, number
from arena_site.pages.freshness import requested_instant
from arena_site.pages.selection import PageSelection
from scoring.selectors.competition import CompetitionIndex, competition_index
from scoring.selectors.condition_differences import (
    ConditionDifference,
    ConditionFigures,
    condition_figures,
    effects,
)


@require_safe
def conditions(request: HttpRequest) -> HttpResponse:
    """What prices, evidence and search add, model by model."""
    as_of, competition = requested_instant(request, timezone.now()), competition_index()
    numbers, stored = condition_figures(at=as_of), competition.conditions
    board, pairs, rows = stored.board(), {}, []
    for row in sorted(numbers.differences, key=lambda row: board not in row.pair):
        pairs["-".join(row.pair)] = " – ".join(map(stored.label, row.pair))
    for row in numbers.differences:
        labels = stored.label(row.condition_a), stored.label(row.condition_b)
        rows.append((competition.by_slug[row.family], *labels, row))
    selection = PageSelection.dated(request, {"pair": list(pairs) or [""]})
    charts = _charts(numbers, selection, competition)
    context = {
        "as_of": as_of,
        "whole": True,
        "filters": selection.filter_links([("Conditions", "pair", pairs)]),
        "effects": effects(numbers.differences, stored),
        "rows": rows,
        "charts": charts,
        "shared_figure": next(iter(charts.values()), None),
    }
    return TemplateResponse(request, "conditions.html", context)


def _charts(numbers: ConditionFigures, selection: PageSelection, competition: CompetitionIndex) -> dict[str, Figure]:
    """The chart of the chosen pair, and those of samples where there are any."""
    of_pair = [row for row in numbers.differences if "-".join(row.pair) == selection["pair"]]
    query, charts = selection.suffix, {}
    if of_pair:
        charts["differences"] = _difference_figure(of_pair, competition, query, numbers.at)
    if numbers.spread:
        charts["spread"] = _spread_figure(numbers.spread, query, numbers.at)
    if numbers.later:
        charts["later"] = _later_figure(numbers.later, query, numbers.at)
    return charts


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


def _spread_figure(bins: Sequence[Mapping[str, Any]], query: str, at: datetime) -> Figure:
    rows = []
    for row in bins:
        rows.append({**row, "display_name": f"{number(row['low'], 2)} to {number(row['high'], 2)}", "family": None})
    chart = interval_chart(rows, "brier", {}, x_title="Brier score (0 is best)", unit="score")
    title = "The Brier score of forecasts by the spread of their samples."
    note = "Fifths of the forecasts by the standard deviation of their samples’ log odds; 95 % intervals over events."
    source = f"{count(sum(row['forecasts'] for row in bins))} forecasts of several samples"
    return Figure("spread", title, chart, note, source=source, at=at, query=query)


def _later_figure(samples: Sequence[Mapping[str, Any]], query: str, at: datetime) -> Figure:
    rows = [{**row, "display_name": f"Sample {row['sample']}", "family": None} for row in samples]
    chart = interval_chart(
        rows, "per_dollar", {}, x_title="Brier score lowered per dollar", unit="score",
        baselines={"Nothing": 0.0},
    )  # fmt: skip
    title = "By how much each later sample lowers the Brier score of the median, for a dollar."
    note = "The mean gain of a forecast by its sample, divided by the sample’s mean cost; intervals resample events."
    return Figure("later-samples", title, chart, note, at=at, query=query)
