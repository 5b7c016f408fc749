"""The files of the charts of all pages: their data as CSV, and images as SVG and PNG, at addresses below the page."""

import csv
from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from arena_site.pages.addresses import by_address
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.images import png_image, svg_image
from arena_site.pages.citations import dated_query

Figures = Callable[..., Iterable[Figure]]
"""A page's figures, given its request and the arguments in its address."""
TYPES: Mapping[str, str] = {"csv": "text/csv; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}


def with_charts(
    route: str, view: Callable[..., HttpResponse], figures: Figures, *, name: str, of_families: bool = False
) -> list[URLPattern]:
    """The address of a page, and that of the files of its charts; `of_families` if it names families."""
    files_name, files = f"{name}-chart", chart_file
    if of_families:
        view, files = by_address(view, name), by_address(chart_file, files_name)
    files_route = f"{route}charts/<slug:chart>.<slug:extension>"
    return [path(route, view, name=name), path(files_route, files, {"figures": figures}, name=files_name)]


@require_safe
def chart_file(request: HttpRequest, *, figures: Figures, chart: str, extension: str, **page: Any) -> HttpResponse:
    """A chart of a page as a file, for the same choices in the query as the page."""
    if extension not in TYPES:
        raise Http404(f"charts come as {', '.join(TYPES)}")
    figure = next((figure for figure in figures(request, **page) if figure.name == chart), None)
    if figure is None:
        raise Http404(f"this page has no chart {chart} yet")
    content: str | bytes
    if extension == "csv":
        content = _csv(figure)
    else:
        page_path = request.path.rpartition("charts/")[0]
        svg = svg_image(figure, request.build_absolute_uri(page_path + dated_query(figure)))
        content = png_image(svg) if extension == "png" else svg
    disposition = "attachment" if extension == "csv" else "inline"
    parts = ["demo"] if settings.ARENA_DEMO else []
    file_name = "-".join(parts + [part for part in request.path.split("/") if part not in ("", "charts")])
    headers = {"Content-Disposition": f'{disposition}; filename="{file_name}"'}
    return HttpResponse(content, content_type=TYPES[extension], headers=headers)


def _csv(figure: Figure) -> str:
    from forecast_rank.files.csv_cells import csv_cell

    file = StringIO()
    writer = csv.writer(file)
    for row in figure.rows:
        writer.writerow(map(csv_cell, row))
    return file.getvalue()
