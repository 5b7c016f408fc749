"""What every endpoint shares: exact decimals as text, strict filters and orderings, pages and cursors.

Kept apart from `arena_site.api`, which knows all endpoints and so can not be imported by them.
"""

from markets.rest.filters import (
    INSTANT,
    Filters,
    InstantField,
    OneOfFilter,
    PresentFilter,
    ReferenceFilter,
    check_parameters,
    past_instant,
)
from markets.rest.pages import Cursor, Pages
from markets.rest.rows import (
    FIELDS,
    DecimalText,
    Money,
    OptionalText,
    Row,
    asked_fields,
    field_names,
    lean,
    thinned,
)
from markets.rest.views import PROBLEM, Documented, JsonAlways, Rows, query_parameter

__all__ = [
    "FIELDS",
    "INSTANT",
    "PROBLEM",
    "Cursor",
    "DecimalText",
    "Documented",
    "Filters",
    "InstantField",
    "JsonAlways",
    "Money",
    "OneOfFilter",
    "OptionalText",
    "Pages",
    "PresentFilter",
    "ReferenceFilter",
    "Row",
    "Rows",
    "asked_fields",
    "check_parameters",
    "field_names",
    "lean",
    "past_instant",
    "query_parameter",
    "thinned",
]
