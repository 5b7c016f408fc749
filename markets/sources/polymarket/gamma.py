"""Client of Gamma, Polymarket's catalogue."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Self
from urllib.parse import quote

from foundation.heartbeats import parallel_results
from foundation.http import UpstreamError
from markets.sources.base import (
    Catalogue,
    CataloguePage,
    SkippedMarket,
    Unresolved,
    VenueMarket,
    VenueOutcome,
    VenueResolution,
)
from markets.sources.field_parsers import line
from markets.sources.polymarket.clob import Clob
from markets.sources.polymarket.parsing import parse_market

LARGEST_PAGE = 100
"""Gamma silently reduces a larger limit to this."""
LISTS_AT_ONCE = 4
"""Lists by id that are requested at a time. Polymarket delays what exceeds 300 requests in ten seconds."""
SUM_TOLERANCE = Decimal("0.001")


class Gamma(Catalogue):
    """The client of Gamma, with that of the CLOB for winner flags; options are those of `HttpService`."""

    source = "polymarket"
    by_volume = True

    def __init__(self, base_url: str, *, clob: Clob | None = None, **options: Any) -> None:
        super().__init__("gamma", base_url, **options)
        self._clob = clob

    def limit_total(self, seconds: float) -> Self:
        if self._clob is not None:
            self._clob.limit_total(seconds)
        return super().limit_total(seconds)

    def close(self) -> None:
        super().close()
        if self._clob is not None:
            self._clob.close()

    def catalogue(self, page_limit: int = LARGEST_PAGE, max_pages: int = 200) -> Iterator[CataloguePage]:
        """The pages of the catalogue, by descending volume; the last one has no cursor.

        Raises UpstreamError if a cursor repeats or the pages do not end.
        """
        query = {"limit": min(page_limit, LARGEST_PAGE), "order": "volumeNum", "ascending": "false", "closed": "false"}
        query["include_tag"] = "true"
        page_after = partial(self._keyset_page, query)
        try:
            first = page_after(None)
        except UpstreamError as error:
            if not _has_no_keyset(error):
                raise
            page_after = partial(self._offset_page, query)
            first = page_after(None)
        yield from self.follow_cursors(page_after, max_pages, first)

    def market(self, external_id: str) -> VenueMarket | SkippedMarket | None:
        """A market of any status; None if Gamma has none with this id."""
        raw = self.find_json(f"/markets/{quote(external_id, safe='')}", {"include_tag": "true"}, missing={404, 422})
        return None if raw is None else self.with_id(external_id, parse_market(raw, external_id))

    def markets(self, external_ids: Sequence[str]) -> dict[str, VenueMarket]:
        """Markets by id, a hundred in a request. Gamma lists open or closed ones, so that there are two requests."""
        batches = []
        for first in range(0, len(external_ids), LARGEST_PAGE):
            batches.append(external_ids[first : first + LARGEST_PAGE])
        markets: dict[str, VenueMarket] = {}
        for of_batch in parallel_results(self._batch, batches, LISTS_AT_ONCE):
            markets |= of_batch
        return markets

    def _batch(self, external_ids: Sequence[str]) -> dict[str, VenueMarket]:
        markets: dict[str, VenueMarket] = {}
        missing = list(external_ids)
        for closed in ("false", "true"):
            query = {"id": missing, "closed": closed, "limit": LARGEST_PAGE, "include_tag": "true"}
            rows = self._keyset_page(query, None).rows if missing else ()
            # A server that ignores the ids answers with other markets too.
            for row in rows:
                if row.external_id in missing:
                    markets[row.external_id] = row
            missing = [external_id for external_id in missing if external_id not in markets]
        return markets

    def resolution(self, row: VenueMarket) -> VenueResolution | Unresolved:
        """The result of a closed market of the first protocol; a final price alone decides nothing.

        Resolved: prices exactly a permutation of 1 and 0s, and either the oracle's status `resolved` or exactly one
        winner flag at the CLOB that agrees. Cancelled: oracle `resolved`, all prices equal, positive, summing to 1.
        """
        if row.version == "v2":
            return Unresolved("Polymarket has not documented how a Protocol V2 market shows its resolution")
        oracle = row.oracle_status or "nothing"
        prices = [outcome.price for outcome in row.outcomes if outcome.price is not None]
        if len(prices) < len(row.outcomes):
            return Unresolved("a final price is missing")
        if prices.count(Decimal(1)) == 1 and prices.count(Decimal(0)) == len(prices) - 1:
            winner = next(outcome for outcome in row.outcomes if outcome.price == 1)
            if oracle == "resolved" or self._is_flagged(winner, row):
                return VenueResolution(winner)
            return Unresolved(f"prices are final but the oracle says {oracle}")
        equal = len(set(prices)) == 1 and prices[0] > 0 and abs(sum(prices, Decimal(0)) - 1) <= SUM_TOLERANCE
        if oracle == "resolved" and equal:
            return VenueResolution(None)
        return Unresolved(f"closed at {', '.join(f'{price:f}' for price in prices)}, oracle says {oracle}")

    def _is_flagged(self, winner: VenueOutcome, row: VenueMarket) -> bool:
        """True if the CLOB flags this outcome alone as the winner."""
        if self._clob is None or not row.condition_id or not winner.token_id:
            return False
        flagged = self._clob.winner(row.condition_id)
        return flagged is not None and flagged.token_id == winner.token_id

    def _keyset_page(self, query: dict[str, Any], cursor: str | None) -> CataloguePage:
        # Under any other name than after_cursor Gamma ignores the cursor and returns page one again.
        after = {"after_cursor": cursor} if cursor else {}
        raws, following = self._rows_of("/markets/keyset", query | after)
        return _page(raws, following, ref=f"after {cursor}" if cursor else "first page")

    def _offset_page(self, query: dict[str, Any], cursor: str | None) -> CataloguePage:
        offset = int(cursor or 0)
        try:
            raws, _ = self._rows_of("/markets", query | {"offset": offset})
        except UpstreamError as error:
            if offset and error.status == 422:  # beyond the offsets that the old list allows
                return CataloguePage((), (), None)
            raise
        # Only an empty page is surely the last; others may be shorter than requested.
        return _page(raws, str(offset + len(raws)) if raws else None, ref=f"offset {offset}")

    def _rows_of(self, path: str, query: dict[str, Any]) -> tuple[list[Any], str | None]:
        answer = self.get_json(path, query)
        if isinstance(answer, list):
            return answer, None
        raws = answer.get("markets", answer.get("data")) if isinstance(answer, dict) else None
        if not isinstance(raws, list):
            raise UpstreamError(self.service, f"GET {path} answered no list of markets", status=200)
        cursor = answer.get("next_cursor")
        return raws, line(str(cursor)) if cursor else None


def _page(raws: list[Any], cursor: str | None, ref: str) -> CataloguePage:
    return CataloguePage.of([parse_market(raw, f"{ref}, row {n}") for n, raw in enumerate(raws, start=1)], cursor)


def _has_no_keyset(error: UpstreamError) -> bool:
    return error.status in {404, 405} or (error.status == 503 and "not configured" in error.reason)
