"""Lists as CSV: the rows of the JSON, in the same order."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Any

from rest_framework.renderers import BaseRenderer

NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


class CsvRenderer(BaseRenderer):
    """A page's rows under a header of their keys; lists and objects as JSON text, null as an empty cell."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        names = renderer_context["view"].row_names()
        return csv_table(names, data["results"]).encode()


def csv_table(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """A header and a line for each row, by RFC 4180."""
    from forecast_rank.files.csv_cells import csv_cell

    def cell(value: Any) -> str:
        # A decimal is a string in the JSON; a negative one is no formula.
        return value if isinstance(value, str) and NUMBER.fullmatch(value) else csv_cell(value)

    table = StringIO()
    writer = csv.writer(table)
    writer.writerow(names)
    for row in rows:
        writer.writerow([cell(row[name]) for name in names])
    return table.getvalue()
