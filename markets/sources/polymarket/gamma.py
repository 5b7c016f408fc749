"""Gamma, Polymarket's catalogue: which markets there are, and how they stand."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

from markets.http import HttpService, UpstreamError
from markets.sources.base import MarketRow, Page, SkippedRow
from markets.sources.polymarket.rows import parse_market
from markets.sources.values import line

LARGEST_PAGE = 100
"""Gamma cuts a larger limit to this without a word."""


class Gamma(HttpService):
    """The client of Gamma; options are those of `HttpService`."""

    source = "polymarket"
    by_volume = True

    def __init__(self, base_url: str, **options: Any) -> None:
        super().__init__("gamma", base_url, **options)

    def catalogue(
        self,
        page_limit: int = LARGEST_PAGE,
        order: str = "volumeNum",
        ascending: bool = False,
        closed: bool = False,
        max_pages: int = 200,
    ) -> Iterator[Page]:
        """Every page of the catalogue, the biggest volume first; the last one has no cursor.

        Stop when you have enough. UpstreamError when the walk goes round in circles or does not end.
        """
        query = {
            "limit": min(page_limit, LARGEST_PAGE),
            "order": order,
            "ascending": _word(ascending),
            "closed": _word(closed),
            "include_tag": "true",
        }
        try:
            first = self._keyset_page(query, None)
        except UpstreamError as error:
            if not _has_no_keyset(error):
                raise
            yield from self._walk(self._offset_page, query, self._offset_page(query, None), max_pages)
        else:
            yield from self._walk(self._keyset_page, query, first, max_pages)

    def market(self, external_id: str) -> MarketRow | SkippedRow | None:
        """One market however it stands, closed ones too; None where Gamma knows no such id."""
        path = f"/markets/{quote(external_id, safe='')}"
        try:
            raw = self.get_json(path, {"include_tag": "true"})
        except UpstreamError as error:
            if error.status in {404, 422}:
                return None
            raise
        row = parse_market(raw, external_id)
        if isinstance(row, MarketRow) and row.external_id != external_id:
            return SkippedRow(external_id, f"answered with another market, {row.external_id}")
        return row

    def _walk(
        self,
        page_after: Callable[[dict[str, Any], str | None], Page],
        query: dict[str, Any],
        page: Page,
        max_pages: int,
    ) -> Iterator[Page]:
        seen: set[str] = set()
        for _ in range(max_pages):
            yield page
            if page.cursor is None:
                return
            if page.cursor in seen:
                raise UpstreamError(self.service, f"the catalogue repeats its cursor {page.cursor!r}")
            seen.add(page.cursor)
            page = page_after(query, page.cursor)
        raise UpstreamError(self.service, f"the catalogue did not end within {max_pages} pages")

    def _keyset_page(self, query: dict[str, Any], cursor: str | None) -> Page:
        # Under any name but after_cursor, the cursor is ignored and page one comes back for ever.
        after = {"after_cursor": cursor} if cursor else {}
        raws, following = self._rows_of("/markets/keyset", query | after)
        return _page(raws, following, ref=f"after {cursor}" if cursor else "first page")

    def _offset_page(self, query: dict[str, Any], cursor: str | None) -> Page:
        offset = int(cursor or 0)
        try:
            raws, _ = self._rows_of("/markets", query | {"offset": offset})
        except UpstreamError as error:
            if offset and error.status == 422:  # deeper than the old list may be walked
                return Page((), (), None)
            raise
        # Only an empty page is surely the last: a page may be shorter than asked for.
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


def _page(raws: list[Any], cursor: str | None, ref: str) -> Page:
    parsed = [parse_market(raw, f"{ref}, row {place}") for place, raw in enumerate(raws, start=1)]
    return Page(
        rows=tuple(row for row in parsed if isinstance(row, MarketRow)),
        skipped=tuple(row for row in parsed if isinstance(row, SkippedRow)),
        cursor=cursor,
    )


def _has_no_keyset(error: UpstreamError) -> bool:
    return error.status in {404, 405} or (error.status == 503 and "not configured" in error.reason)


def _word(truth: bool) -> str:
    return "true" if truth else "false"
