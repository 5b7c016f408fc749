"""What the conditions add: paired differences between those of one model, and what samples tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.filters import count, number
from arena_site.pages.freshness import requested_instant
from arena_site.pages.selection import PageSelection
from cohorts.conditions import Conditions
from scoring.competition import CompetitionIndex, competition_index
from scoring.condition_differences import (
    ConditionDifference,
    ConditionDifferences,
    effects,
    read_condition_differences,
    read_sample_figures,
)


class Figures(NamedTuple):
    """The charts of the page: the differences of one pair, and of samples their spread and what later ones bring."""

    differences: Figure | None
    spread: Figure | None
    later: Figure | None


@require_safe
def conditions(request: HttpRequest) -> HttpResponse:
    """What prices, evidence and search add, model by model."""
    as_of = requested_instant(request, timezone.now())
    competition = competition_index()
    stored, families = competition.conditions, competition.by_slug
    differences = read_condition_differences(at=as_of)
    selection, pairs = _selection(request, differences.rows, stored)
    figures = _figures(differences, selection, competition, as_of)
    rows = []
    for row in differences.rows:
        rows.append((families[row.family], stored.label(row.condition_a), stored.label(row.condition_b), row))
    context = {
        "as_of": as_of,
        "whole": True,
        "selection": selection,
        "filters": selection.filter_links([("Conditions", "pair", pairs)]),
        "effects": effects(differences.rows, stored),
        "rows": rows,
        **figures._asdict(),
        "shared_figure": next(filter(None, figures), None),
    }
    return render(request, "conditions.html", context)


def conditions_figures(request: HttpRequest) -> list[Figure]:
    """The charts of the page."""
    as_of = requested_instant(request, timezone.now())
    competition = competition_index()
    differences = read_condition_differences(at=as_of)
    selection, _ = _selection(request, differences.rows, competition.conditions)
    return list(filter(None, _figures(differences, selection, competition, as_of)))


def _selection(
    request: HttpRequest, differences: Sequence[ConditionDifference], stored: Conditions
) -> tuple[PageSelection, dict[str, str]]:
    """The chosen pair of conditions, and the labels of all pairs: those with the boards' condition first."""
    board = stored.board()
    pairs = {}
    for row in sorted(differences, key=lambda row: board not in (row.condition_a, row.condition_b)):
        label = f"{stored.label(row.condition_a)} – {stored.label(row.condition_b)}"
        pairs[f"{row.condition_a}-{row.condition_b}"] = label
    selection = PageSelection.from_request(request, {"pair": list(pairs) or [""]})
    return selection.with_text("as_of", request.GET.get("as_of", "")), pairs


def _figures(
    differences: ConditionDifferences, selection: PageSelection, competition: CompetitionIndex, as_of: datetime | None
) -> Figures:
    samples, query, at = read_sample_figures(at=as_of), selection.suffix, differences.at
    of_pair = [row for row in differences.rows if f"{row.condition_a}-{row.condition_b}" == selection["pair"]]
    return Figures(
        _difference_figure(of_pair, competition, query, at) if of_pair else None,
        _spread_figure(samples["spread"], query, at) if samples["spread"] else None,
        _later_figure(samples["later"], query, at) if samples["later"] else None,
    )


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
    label = competition.conditions.label
    first, second = label(rows[0].condition_a), label(rows[0].condition_b)
    title = f"Each model’s Brier score {first}, less its Brier score {second}."
    note = f"Left of the line a model forecasts better {first}. 95 % intervals, corrected as p in the table is."
    return Figure("differences", title, chart, note, at=at, query=query)


def _spread_figure(bins: Sequence[Mapping[str, Any]], query: str, at: datetime) -> Figure:
    rows = []
    for row in bins:
        rows.append({**row, "display_name": f"{number(row['low'], 2)} to {number(row['high'], 2)}", "family": None})
    chart = interval_chart(
        rows, "brier", {}, interval="brier_ci", x_title="Brier score (0 is best)", unit="score", baselines={}
    )
    title = "The Brier score of forecasts by the spread of their samples."
    note = "Fifths of the forecasts by the standard deviation of their samples’ log odds; intervals resample events."
    source = f"{count(sum(row['forecasts'] for row in bins))} forecasts of several samples"
    return Figure("spread", title, chart, note, source=source, at=at, query=query)


def _later_figure(samples: Sequence[Mapping[str, Any]], query: str, at: datetime) -> Figure:
    rows = [{**row, "display_name": f"Sample {row['sample']}", "family": None} for row in samples]
    chart = interval_chart(
        rows, "per_dollar", {}, interval="per_dollar_ci", x_title="Brier score lowered per dollar", unit="score",
        baselines={"Nothing": 0.0},
    )  # fmt: skip
    title = "By how much each later sample lowers the Brier score of the median, for a dollar."
    note = "The mean gain of a forecast by its sample, divided by the sample’s mean cost; intervals resample events."
    return Figure("later-samples", title, chart, note, at=at, query=query)
