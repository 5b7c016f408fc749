"""Kalshi's client: the catalogue event by event, and single markets."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from foundation.http import MIB, UpstreamError
from markets.sources.base import (
    Catalogue,
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
CHANGED_EVENTS, CHANGED_BYTES = 50, 2 * MIB
"""The events on a page of changes, and the bytes after which no further page is read: the next walk shows the rest.

Of a generated catalogue of 80,000 markets a walk reads 76 MB in 40 requests and takes 7 s, a sync in between reads
0.7 MB in 0.6 s, or 3 MB in 0.8 s where 300 events have changed (23 November 2026).
"""
LARGEST_BATCH = 100
"""Tickers in one request; more would make a long address."""


class Kalshi(Catalogue):
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

    def changes(self, since: datetime, external_ids: Sequence[str]) -> Sequence[CataloguePage]:
        """The events that Kalshi says have changed, as far as the budget of bytes goes, and the markets by ticker."""
        query = {"status": "open", "with_nested_markets": "true", "limit": CHANGED_EVENTS}
        query["min_updated_ts"] = int(since.timestamp())
        pages: list[CataloguePage] = []
        before = self.bytes_received
        for page in self.follow_cursors(partial(self._page, query), max_pages=LARGEST_PAGE):
            pages.append(page)
            if self.bytes_received - before > CHANGED_BYTES:
                break
        missing = dict.fromkeys(external_ids)
        for page in pages:
            for external_id in (*map(attrgetter("external_id"), page.rows), *map(attrgetter("ref"), page.skipped)):
                missing.pop(external_id, None)
        tickers = iter(missing)
        while batch := list(islice(tickers, LARGEST_BATCH)):
            pages.append(self._markets_by_ticker(batch))
        return pages

    def _markets_by_ticker(self, tickers: Sequence[str]) -> CataloguePage:
        markets = self._list("/markets", "markets", {"tickers": ",".join(tickers), "limit": len(tickers)})[0]
        parsed: list[VenueMarket | SkippedMarket] = []
        for place, raw in enumerate(markets, start=1):
            row = parse_market(raw, f"market {place} by ticker")
            if isinstance(row, SkippedMarket) and row.ref in tickers:
                parsed.append(row)
            elif isinstance(row, VenueMarket) and row.external_id in tickers:
                # Without its event a market's question may lack words; the stored one is complete.
                parsed.append(replace(row, question=""))
        return CataloguePage.of(parsed, None)

    def market(self, external_id: str) -> VenueMarket | SkippedMarket | None:
        """A market of any status; None if Kalshi has none with this ticker."""
        path = f"/markets/{quote(external_id, safe='')}"
        answer = self.find_json(path)
        if answer is None:
            # Markets that settled months ago are answered from another tier alone.
            answer = self.find_json(f"/historical{path}")
        if answer is None:
            return None
        if not isinstance(answer, dict) or "market" not in answer:
            raise UpstreamError(self.service, f"GET {path} answered no market", status=200)
        return self.with_id(external_id, parse_market(answer["market"], external_id))

    def markets(self, external_ids: Sequence[str]) -> dict[str, VenueMarket]:
        """Markets by ticker, a hundred in a request. Kalshi's list lacks markets that settled months ago."""
        markets: dict[str, VenueMarket] = {}
        for first in range(0, len(external_ids), LARGEST_BATCH):
            for row in self._markets_by_ticker(external_ids[first : first + LARGEST_BATCH]).rows:
                markets[row.external_id] = row
        return markets

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
        events, following = self._list("/events", "events", query | ({"cursor": cursor} if cursor else {}))
        ref = f"after {cursor}" if cursor else "first page"
        parsed: list[VenueMarket | SkippedMarket] = []
        for place, raw in enumerate(events, start=1):
            parsed += parse_event(raw, f"{ref}, event {place}")
        return CataloguePage.of(parsed, following)

    def _list(self, path: str, name: str, query: dict[str, Any]) -> tuple[list[Any], str | None]:
        """The list in an answer, and the cursor of the next page."""
        answer = self.get_json(path, query)
        rows = answer.get(name) if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise UpstreamError(self.service, f"GET {path} answered no list of {name}", status=200)
        cursor = answer.get("cursor")
        return rows, line(str(cursor)) if cursor else None
