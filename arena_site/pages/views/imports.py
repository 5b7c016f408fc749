"""Collections of imported forecasts, with their boards and sources."""

from collections.abc import Collection
from datetime import datetime
from itertools import chain
from typing import Any

from django.db.models import Prefetch
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.citations import citation
from arena_site.pages.filters import count
from arena_site.pages.freshness import requested_instant
from arena_site.pages.selection import PageSelection
from scoring.models import ImportCollection, ImportLeaderboard, RejectedRow
from scoring.selectors.people_gap import people_gap

RANKED_BY = "brier"
BASELINES = ("market", "uniform")
REJECTED_ROWS_SHOWN = 50


@require_safe
def collections(request: HttpRequest) -> HttpResponse:
    """Every collection, with its numbers of forecasters and questions."""
    rows = (
        ImportCollection.objects.filter(leaderboard__isnull=False)
        .select_related("leaderboard")
        .defer("leaderboard__report")
    )
    return render(request, "imports.html", {"collections": rows})


@require_safe
def collection(request: HttpRequest, slug: str) -> HttpResponse:
    """A collection's board, and the source of every row in it."""
    from forecast_rank.readers.formats import FORMAT_NOTES  # loads NumPy and polars

    row = get_object_or_404(
        ImportCollection.objects.filter(leaderboard__isnull=False).select_related("leaderboard"), slug=slug
    )
    as_of = requested_instant(request, timezone.now())
    imported = row.imports.filter(completed=True)
    if as_of is not None:
        imported = imported.filter(imported_at__lte=as_of)
    board = _board(row, as_of)
    report = board.report or {}
    first = RejectedRow.objects.order_by("row")[:REJECTED_ROWS_SHOWN]
    imports = []
    for batch in imported.prefetch_related(Prefetch("rejections", first, "first_rejections")):
        batch_row = {
            "import": batch,
            "note": FORMAT_NOTES.get(batch.format),
            "rejections": batch.first_rejections,
            "hidden": max(0, batch.rejected - REJECTED_ROWS_SHOWN),
        }
        imports.append(batch_row)
    ranked = []
    for rank, name in enumerate(report.get("rankings", {}).get(RANKED_BY, []), start=1):
        ranked.append({"rank": rank, "name": name, "figures": report["forecasters"][name]})
    context: dict[str, Any] = {
        "collection": row,
        "board": board,
        "as_of": as_of,
        "citation": citation(
            request, PageSelection({}, {}).with_text("as_of", ""), f"forecasts of {row.name}", None, board.computed_at
        ),
        "data": report.get("data", {}),
        "ranked": ranked,
        "people": row.people,
        "figure": _people_figure(row.people, request, board) if row.people and ranked else None,
        "references": [{"name": name, "figures": figures} for name, figures in report.get("references", {}).items()],
        "categories": _categories(report),
        "imports": imports,
    }
    return TemplateResponse(request, "import.html", context)


def _board(row: ImportCollection, as_of: datetime | None) -> ImportLeaderboard:
    """The collection's board, now or as of an instant. Raises Http404 before its first import."""
    board: ImportLeaderboard | None = row.leaderboard
    if as_of is not None:
        from scoring.services.import_leaderboards import past_import_leaderboard

        board = past_import_leaderboard(collection=row, at=as_of)
    if board is None:
        raise Http404("as_of: nothing had been imported by then")
    return board


def _people_figure(humans: Collection[str], request: HttpRequest, board: ImportLeaderboard) -> Figure:
    """The score of each model with its interval; people, market and uniform are lines."""
    report = board.report or {}
    gap, column = people_gap(report, humans), report.get("headline") or RANKED_BY
    models, lines = [], {}
    for name in report.get("rankings", {}).get(column, []):
        figures = report["forecasters"][name]
        if name in humans:
            lines[name] = figures[column]
        else:
            models.append({**figures, "display_name": name, "family": None})
    for name, figures in report.get("references", {}).items():
        if name in BASELINES and figures.get(column) is not None:
            lines[name.capitalize()] = figures[column]
    chart = interval_chart(models, column, {}, x_title="Brier score (0 is best)", unit="score", baselines=lines)
    title = gap.sentence if gap else "People, market and uniform on these questions; no model answered them."
    note = "Lower is better; vertical lines are people, the market’s prices and equal probabilities."
    source = f"{count(board.questions)} imported questions"
    query = PageSelection.dated(request).suffix
    return Figure("people", title, chart, note, source=source, at=board.computed_at, query=query)


def _categories(report: dict[str, Any]) -> dict[str, Any]:
    """The Brier score of each forecaster and reference in each category; empty without categories."""
    forecasters = {**report.get("forecasters", {}), **report.get("references", {})}
    by_name = {name: figures.get("brier_by_category") or {} for name, figures in forecasters.items()}
    names = sorted(set(chain(*by_name.values())))
    rows = [{"name": name, "scores": list(map(scores.get, names))} for name, scores in by_name.items()]
    return {"names": names, "rows": rows} if names else {}
