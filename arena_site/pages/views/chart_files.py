"""The charts of all pages at addresses of their own: data as CSV, and images as SVG and PNG."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path
from django.views.decorators.http import require_safe

from arena_site.pages.addresses import by_address
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.images import png_image, svg_image
from arena_site.pages.citations import dated_query
from foundation.rest.negotiation import demo_cell

INSTANT = re.compile(r"(?<=[?&])as_of=[^&]*&?|[?&]as_of=[^&]*$")
"""The instant in an address."""
View = Callable[..., HttpResponse]
"""The view of a page, whose figures stand in the context of its template."""
Size = tuple[int, int]
"""Width and height in pixels."""
TYPES: Mapping[str, str] = {"csv": "text/csv; charset=utf-8", "svg": "image/svg+xml", "png": "image/png"}


def with_charts(
    route: str,
    view: View,
    *,
    name: str,
    of_families: bool = False,
    picture_size: Size | None = None,
) -> list[URLPattern]:
    """The address of a page, and that of the files of its charts.

    `of_families` if it names families; `picture_size` is that of a PNG if it is not simply that of its drawing.
    """
    files, files_name, options = chart_file, f"{name}-chart", {"page_view": view, "picture_size": picture_size}
    if of_families:
        view, files = by_address(view, name), by_address(files, files_name)
    return [
        path(route, view, name=name),
        path(f"{route}charts/<slug:chart>.<slug:extension>", files, options, name=files_name),
    ]


@require_safe
def chart_file(
    request: HttpRequest, *, page_view: View, picture_size: Size | None, chart: str, extension: str, **page: Any
) -> HttpResponse:
    """A chart of a page as a file, for the same choices in the query as the page."""
    if extension not in TYPES:
        raise Http404(f"charts come as {', '.join(TYPES)}")
    page_response = page_view(request, **page)
    if page_response.status_code == HTTPStatus.FOUND:  # to the instant of a published board
        query = urlsplit(page_response.headers["Location"]).query
        return HttpResponseRedirect(f"{request.path}?{query}")
    figure = _figure(page_response, chart)
    content: str | bytes
    if extension == "csv":
        content = _csv(figure)
    else:
        address = _page_address(request, figure)
        if extension == "png":  # cached by its text, where the day stands but no instant
            content = png_image(svg_image(figure, INSTANT.sub("", address)), picture_size)
        else:
            content = svg_image(figure, address)
    disposition = "attachment" if extension == "csv" else "inline"
    parts = ["demo"] if settings.ARENA_DEMO else []
    file_name = "-".join(parts + [part for part in request.path.split("/") if part not in ("", "charts")])
    headers = {"Content-Disposition": f'{disposition}; filename="{file_name}"'}
    return HttpResponse(content, content_type=TYPES[extension], headers=headers)


def _figure(page_response: HttpResponse, name: str) -> Figure:
    """The figure of a page with this name. Raises Http404."""
    for figure in _figures(getattr(page_response, "context_data", None)):
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
    """The address of the page of a figure whose file is requested, as it is now."""
    page_path = request.path.rpartition("charts/")[0]
    return request.build_absolute_uri(page_path + dated_query(figure))


def _csv(figure: Figure) -> str:
    from forecast_rank.files.csv_cells import csv_cell

    file = StringIO()
    writer = csv.writer(file)
    for place, row in enumerate(figure.rows):
        writer.writerow([*map(csv_cell, row), *(demo_cell() if place else demo_cell("demo"))])
    return file.getvalue()
