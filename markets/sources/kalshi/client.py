"""Kalshi's client: the catalogue event by event, and single markets."""

from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

from markets.foundation.http import UpstreamError
from markets.sources.base import (
    CatalogueClient,
    CataloguePage,
    SkippedMarket,
    Unresolved,
    VenueMarket,
    VenueResolution,
)
from markets.sources.field_parsers import line
from markets.sources.kalshi.parsing import FINAL, NOBODY_WON, parse_event, parse_market

LARGEST_PAGE = 200
"""Events, each with its markets."""


class Kalshi(CatalogueClient):
    """The client of Kalshi's trade API, which needs no key for reading; options are those of `HttpService`."""

    source = "kalshi"
    by_volume = False

    def __init__(self, base_url: str, **options: Any) -> None:
        super().__init__("kalshi", base_url, **options)

    def catalogue(self, page_limit: int = LARGEST_PAGE, max_pages: int = 200) -> Iterator[CataloguePage]:
        """The pages of the markets of open events, in the venue's order; the last one has no cursor.

        By event, because the list of markets begins with thousands of parlays. Raises UpstreamError if a cursor
        repeats or the pages do not end.
        """
        query = {"status": "open", "with_nested_markets": "true", "limit": min(page_limit, LARGEST_PAGE)}
        return self.follow_cursors(partial(self._page, query), max_pages)

    def market(self, external_id: str) -> VenueMarket | SkippedMarket | None:
        """A market of any status; None if Kalshi has none with this ticker."""
        path = f"/markets/{quote(external_id, safe='')}"
        answer = self.find_json(path)
        if answer is None:
            return None
        if not isinstance(answer, dict) or "market" not in answer:
            raise UpstreamError(self.service, f"GET {path} answered no market", status=200)
        return self.with_id(external_id, parse_market(answer["market"], external_id))

    def resolution(self, row: VenueMarket) -> VenueResolution | Unresolved:
        """The result of a closed market, by its terminal status: one merely determined may be disputed and amended.

        Resolved: the result is yes or no, and a stated settlement value agrees. Cancelled: any settlement in between.
        """
        if row.oracle_status != FINAL:
            return Unresolved(f"Kalshi says {row.oracle_status or 'nothing'}, not {FINAL}")
        if row.result in NOBODY_WON:
            return VenueResolution(None)
        winner = next((outcome for outcome in row.outcomes if outcome.name.casefold() == row.result), None)
        if winner is None:
            return Unresolved(f"{FINAL} with the result {row.result!r}")
        if winner.price != 1:
            return Unresolved(f"{FINAL} as {row.result}, which pays {winner.price}")
        return VenueResolution(winner)

    def _page(self, query: dict[str, Any], cursor: str | None) -> CataloguePage:
        answer = self.get_json("/events", query | ({"cursor": cursor} if cursor else {}))
        events = answer.get("events") if isinstance(answer, dict) else None
        if not isinstance(events, list):
            raise UpstreamError(self.service, "GET /events answered no list of events", status=200)
        ref = f"after {cursor}" if cursor else "first page"
        parsed = [row for place, raw in enumerate(events, start=1) for row in parse_event(raw, f"{ref}, event {place}")]
        following = answer.get("cursor")
        return CataloguePage.of(parsed, line(str(following)) if following else None)
