"""The lists of the API, and what their declarations do not say of them."""

from typing import NamedTuple

import pytest

from arena_site.api import ENDPOINTS
from foundation.rest.cursors import StrictCursorPagination
from foundation.rest.viewsets import ReadOnlyViewSet


class Expected(NamedTuple):
    """What an endpoint's declarations do not say. Queries are those beyond a request that is refused at once."""

    order: str
    """The field by which its list comes, with a minus for descending; empty for an order that no field shows."""
    list_queries: int
    row_queries: int | None = None
    """The most of any row; None where no row has an address."""


EXPECTED = {
    "leaderboard": Expected("rank", 1),
    "agents-board": Expected("", 1),
    "comparisons/conditions": Expected("", 1),
    "disagreements": Expected("", 7),
    "risk": Expected("rank", 1),
    "cohorts": Expected("-number", 4, 3),
    "methodologies": Expected("version", 3, 2),
    "universes": Expected("-week_start", 2, 2),
    "families": Expected("", 2, 1),
    "releases": Expected("id", 2, 1),
    "agents": Expected("id", 6, 5),
    "decisions": Expected("-id", 2, 4),
    "trades": Expected("id", 1, 1),
    "positions": Expected("id", 2, 1),
    "journal": Expected("id", 2, 1),
    "settlements": Expected("-settled_at", 3, 2),
    "reversals": Expected("-reversed_at", 2, 1),
    "snapshots": Expected("-taken_at", 4, 4),
    "brier-scores": Expected("id", 2, 1),
    "markets": Expected("-volume", 3, 2),
    "prices": Expected("-observed_at", 1, 1),
    "runs": Expected("-started_at", 2, 1),
    "questions": Expected("-id", 3, 5),
    "question-sets": Expected("-day", 2, 2),
    "elicitations": Expected("id", 2, 2),
    "forecasts": Expected("-made_at", 1, 2),
    "forecast-leaderboards": Expected("id", 2, 1),
    "chain": Expected("protocol", 2, 1),
    "chain-links": Expected("protocol", 2, 1),
    "envelopes": Expected("-id", 2, 1),
    "receipts": Expected("sequence", 2, 1),
    "attempts": Expected("-id", 2, 1),
    "exports": Expected("-day", 0),
}
ENDPOINT = pytest.mark.parametrize("name", EXPECTED)
ROWS = [name for name, view in ENDPOINTS.items() if issubclass(view, ReadOnlyViewSet)]
ROW_ENDPOINT = pytest.mark.parametrize("name", ROWS)
CURSORS = [name for name, view in ENDPOINTS.items() if view.pagination_class is StrictCursorPagination]
