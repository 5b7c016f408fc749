"""The charts of all pages at addresses of their own: data as CSV, images as SVG and PNG, and pages for frames."""

import csv
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from typing import Any

from csp.constants import NONE
from csp.decorators import csp_replace
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from arena_site.pages.addresses import by_address
from arena_site.pages.charts.embeds import PREFIX, STYLE_HASH, embed_page
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.images import png_image, svg_image
from arena_site.pages.citations import dated_query
from foundation.rest.negotiation import demo_cell

View = Callable[..., HttpResponse]
"""The view of a page, whose figures stand in the context of its template."""
Size = tuple[int, int]
"""Width and height in pixels."""
EMBED_POLICY = {
    "default-src": [NONE],
    "img-src": [NONE],
    "style-src": [STYLE_HASH],
    "form-action": [NONE],
    "frame-ancestors": ["*"],
}
"""What differs from the policy of other pages: an embed loads nothing, and any site may frame it."""
TYPES: Mapping[str, str] = {"csv": "text/csv; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}


def with_charts(
    route: str,
    view: View,
    *,
    name: str,
    of_families: bool = False,
    picture_size: Size | None = None,
) -> list[URLPattern]:
    """The address of a page, that of the files of its charts and that of their embeds.

    `of_families` if it names families; `picture_size` is that of a PNG if it is not simply that of its drawing.
    """
    files_name, embed_name, of_page = f"{name}-chart", f"{name}-embed", {"page_view": view}
    files, embed = chart_file, embedded_chart
    if of_families:
        view, files, embed = by_address(view, name), by_address(files, files_name), by_address(embed, embed_name)
    charts, embeds = f"{route}charts/<slug:chart>", PREFIX.removeprefix("/")
    return [
        path(route, view, name=name),
        path(f"{charts}.<slug:extension>", files, of_page | {"picture_size": picture_size}, name=files_name),
        path(f"{embeds}/{charts}/", embed, of_page, name=embed_name),
    ]


@require_safe
def chart_file(
    request: HttpRequest, *, page_view: View, picture_size: Size | None, chart: str, extension: str, **page: Any
) -> HttpResponse:
    """A chart of a page as a file, for the same choices in the query as the page."""
    if extension not in TYPES:
        raise Http404(f"charts come as {', '.join(TYPES)}")
    figure = _figure(request, page_view, chart, page)
    content: str | bytes
    if extension == "csv":
        content = _csv(figure)
    else:
        svg = svg_image(figure, _page_address(request, figure))
        content = png_image(svg, picture_size) if extension == "png" else svg
    disposition = "attachment" if extension == "csv" else "inline"
    parts = ["demo"] if settings.ARENA_DEMO else []
    file_name = "-".join(parts + [part for part in request.path.split("/") if part not in ("", "charts")])
    headers = {"Content-Disposition": f'{disposition}; filename="{file_name}"'}
    return HttpResponse(content, content_type=TYPES[extension], headers=headers)


@xframe_options_exempt
@csp_replace(EMBED_POLICY)
@require_safe
def embedded_chart(request: HttpRequest, *, page_view: View, chart: str, **page: Any) -> HttpResponse:
    """A chart of a page as a page of its own that any site may frame, for the same choices in the query."""
    figure = _figure(request, page_view, chart, page)
    return HttpResponse(embed_page(figure, f"{_page_address(request, figure)}#{figure.name}"))


def _figure(request: HttpRequest, page_view: View, name: str, page: Mapping[str, Any]) -> Figure:
    """The figure of a page with this name. Raises Http404."""
    for figure in _figures(getattr(page_view(request, **page), "context_data", None)):
        if figure.name == name:
            return figure
    raise Http404(f"this page has no chart {name} yet")


def _figures(context: Any) -> Iterator[Figure]:
    """The figures in the context of a template, within lists and mappings too."""
    if isinstance(context, Figure):
        yield context
    elif isinstance(context, dict | list | tuple):
        for part in context.values() if isinstance(context, dict) else context:
            yield from _figures(part)


def _page_address(request: HttpRequest, figure: Figure) -> str:
    """The address of the page of a figure whose file or embed is requested, as it is now."""
    page_path = request.path.removeprefix(PREFIX).rpartition("charts/")[0]
    return request.build_absolute_uri(page_path + dated_query(figure))


def _csv(figure: Figure) -> str:
    from forecast_rank.files.csv_cells import csv_cell

    file = StringIO()
    writer = csv.writer(file)
    for place, row in enumerate(figure.rows):
        writer.writerow([*map(csv_cell, row), *(demo_cell() if place else demo_cell("demo"))])
    return file.getvalue()
