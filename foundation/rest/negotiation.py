"""Content negotiation: 406 for an `Accept` that can not be met, 415 for a body of another type."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from operator import attrgetter
from typing import Any

from django.conf import settings
from rest_framework.exceptions import NotAcceptable, ValidationError
from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from foundation.bulk import rows_by

ANYTHING = "*/*"
FORMAT_PARAMETER = "format"
"""The query parameter that selects a format, whatever `Accept` says."""


class StrictNegotiation(BaseContentNegotiation):
    """The format that `format` names, else the best one by the weights of `Accept`, which the framework ignores."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return DefaultContentNegotiation().select_parser(request, parsers)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        if name := request.query_params.get(FORMAT_PARAMETER, "").strip():
            return _by_name(name, renderers)
        if request.headers.get("Accept", ANYTHING).strip() in ("", ANYTHING):
            return renderers[0], renderers[0].media_type
        by_type = rows_by("media_type", renderers)
        try:
            # The request that the framework wraps, whose accepted types are Django's.
            preferred = request._request.get_preferred_type(list(by_type))
        except ValueError:
            preferred = None
        if preferred is None:
            raise NotAcceptable(f"nothing that Accept names is offered; offered: {', '.join(by_type)}")
        return by_type[preferred], preferred


class LateNegotiation(StrictNegotiation):
    """Leaves a 406 to the end of a read, so that a wrong path, method or parameter is named first."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        if request.method not in request.parser_context["view"].allowed_methods:
            return renderers[0], renderers[0].media_type  # a 405, whatever `format` says
        try:
            return super().select_renderer(request, renderers, format_suffix)
        except NotAcceptable as error:
            if request.method not in SAFE_METHODS:
                raise
            request.not_acceptable = error  # type: ignore[attr-defined]
            return renderers[0], renderers[0].media_type


def _by_name(name: str, renderers: Any) -> Any:
    for renderer in renderers:
        if renderer.format == name:
            return renderer, renderer.media_type
    formats = ", ".join(dict.fromkeys(map(attrgetter("format"), renderers)))
    raise ValidationError({FORMAT_PARAMETER: [f"{name} is unknown; known are {formats}"]})


NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


class CsvRenderer(BaseRenderer):
    """A page's rows under a header of their keys; lists and objects as JSON text, null as an empty cell."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        names = renderer_context["view"].row_names()
        return csv_table(names, data["results"]).encode()


def demo_cell(text: str = "invented data") -> list[str]:
    """The last cell of a line of CSV in a demo, so that a saved file says so; none elsewhere."""
    return [text] if settings.ARENA_DEMO else []


def csv_table(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A header and a line for each row, by RFC 4180."""
    from forecast_rank.files.csv_cells import csv_cell

    def cell(value: Any) -> str:
        # A decimal is a string in the JSON; a negative one is no formula.
        return value if isinstance(value, str) and NUMBER.fullmatch(value) else csv_cell(value)

    table = StringIO()
    writer = csv.writer(table)
    writer.writerow([*names, *demo_cell("demo")])
    for row in rows:
        writer.writerow([*(cell(row[name]) for name in names), *demo_cell()])
    return table.getvalue()
