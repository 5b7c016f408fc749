"""Kalshi's client: the catalogue event by event, and single markets."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from markets.http import HttpService, UpstreamError
from markets.sources.base import MarketRow, Page, SkippedRow
from markets.sources.kalshi.rows import parse_event, parse_market
from markets.sources.values import line

LARGEST_PAGE = 200
"""Events; each brings its markets with it."""


class Kalshi(HttpService):
    """The client of Kalshi's trade API, which needs no key for reading; options are those of `HttpService`."""

    source = "kalshi"
    by_volume = False

    def __init__(self, base_url: str, **options: Any) -> None:
        super().__init__("kalshi", base_url, **options)

    def catalogue(self, page_limit: int = LARGEST_PAGE, max_pages: int = 200) -> Iterator[Page]:
        """Every page of the open events' markets, in the venue's own order; the last one has no cursor.

        By event, for the list of markets is nothing but parlays for its first thousands of rows. UpstreamError
        when the walk goes round in circles or does not end.
        """
        query = {"status": "open", "with_nested_markets": "true", "limit": min(page_limit, LARGEST_PAGE)}
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(max_pages):
            page = self._page(query, cursor)
            yield page
            if page.cursor is None:
                return
            if page.cursor in seen:
                raise UpstreamError(self.service, f"the catalogue repeats its cursor {page.cursor!r}")
            seen.add(page.cursor)
            cursor = page.cursor
        raise UpstreamError(self.service, f"the catalogue did not end within {max_pages} pages")

    def market(self, external_id: str) -> MarketRow | SkippedRow | None:
        """One market however it stands, ended ones too; None where Kalshi knows no such ticker."""
        path = f"/markets/{quote(external_id, safe='')}"
        try:
            answer = self.get_json(path)
        except UpstreamError as error:
            if error.status == 404:
                return None
            raise
        if not isinstance(answer, dict) or "market" not in answer:
            raise UpstreamError(self.service, f"GET {path} answered no market", status=200)
        row = parse_market(answer["market"], external_id)
        if isinstance(row, MarketRow) and row.external_id != external_id:
            return SkippedRow(external_id, f"answered with another market, {row.external_id}")
        return row

    def _page(self, query: dict[str, Any], cursor: str | None) -> Page:
        answer = self.get_json("/events", query | ({"cursor": cursor} if cursor else {}))
        events = answer.get("events") if isinstance(answer, dict) else None
        if not isinstance(events, list):
            raise UpstreamError(self.service, "GET /events answered no list of events", status=200)
        ref = f"after {cursor}" if cursor else "first page"
        parsed = [row for place, raw in enumerate(events, start=1) for row in parse_event(raw, f"{ref}, event {place}")]
        following = answer.get("cursor")
        return Page(
            rows=tuple(row for row in parsed if isinstance(row, MarketRow)),
            skipped=tuple(row for row in parsed if isinstance(row, SkippedRow)),
            cursor=line(str(following)) if following else None,
        )
