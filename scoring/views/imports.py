"""Imported forecasts: which collections there are, where each came from, and its board."""

from typing import Any

from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from scoring.imports.formats import NOTES
from scoring.models import ImportCollection, RejectedRow

RANKED_BY = "brier"
REJECTIONS_SHOWN = 50


@require_safe
def collections(request: HttpRequest) -> HttpResponse:
    """Every collection, with what it holds."""
    rows = ImportCollection.objects.filter(board__isnull=False).select_related("board").defer("board__report")
    return render(request, "scoring/imports.html", {"collections": rows})


@require_safe
def collection(request: HttpRequest, slug: str) -> HttpResponse:
    """A collection's board, and the provenance of every row in it."""
    found = get_object_or_404(ImportCollection.objects.filter(board__isnull=False).select_related("board"), slug=slug)
    report = found.board.report or {}
    first = RejectedRow.objects.order_by("row")[:REJECTIONS_SHOWN]
    imports = [
        {
            "made": made,
            "note": NOTES.get(made.format),
            "rejections": made.first_rejections,
            "hidden": max(0, made.rejected - REJECTIONS_SHOWN),
        }
        for made in found.imports.filter(completed=True).prefetch_related(
            Prefetch("rejections", first, "first_rejections")
        )
    ]
    context: dict[str, Any] = {
        "collection": found,
        "board": found.board,
        "data": report.get("data", {}),
        "ranked": _ranked(report),
        "references": [_entry(name, figures) for name, figures in report.get("references", {}).items()],
        "categories": _categories(report),
        "imports": imports,
    }
    return render(request, "scoring/import.html", context)


def _ranked(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The forecasters in the order of the board."""
    order = report.get("rankings", {}).get(RANKED_BY, [])
    return [{"rank": place, **_entry(name, report["forecasters"][name])} for place, name in enumerate(order, start=1)]


def _entry(name: str, figures: dict[str, Any]) -> dict[str, Any]:
    """A row of the board; returns are those at risk aversion 0, in percent of the stake."""
    gross = (figures.get("average_return") or {}).get("0")
    return {"name": name, "e": figures, "net": None if gross is None else 100 * (gross - 1)}


def _categories(report: dict[str, Any]) -> dict[str, Any]:
    """The Brier score of everybody in each category, where there are several."""
    everybody = {**report.get("forecasters", {}), **report.get("references", {})}
    by_name = {name: figures.get("brier_by_category") or {} for name, figures in everybody.items()}
    names = sorted({category for scores in by_name.values() for category in scores})
    rows = [{"name": name, "scores": [scores.get(category) for category in names]} for name, scores in by_name.items()]
    return {"names": names, "rows": rows} if names else {}
