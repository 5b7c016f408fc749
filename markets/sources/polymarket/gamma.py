"""Client of Gamma, Polymarket's catalogue."""

from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

from markets.foundation.http import UpstreamError
from markets.sources.base import CatalogueClient, CataloguePage, SkippedMarket, VenueMarket
from markets.sources.field_parsers import line

LARGEST_PAGE = 100
"""Gamma silently reduces a larger limit to this."""


class Gamma(CatalogueClient):
    """The client of Gamma; options are those of `HttpService`."""

    source = "polymarket"
    by_volume = True

    def __init__(self, base_url: str, **options: Any) -> None:
        super().__init__("gamma", base_url, **options)

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
        return None if raw is None else self.with_id(external_id, _parsed(raw, external_id))

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


def _parsed(raw: object, ref: str) -> VenueMarket | SkippedMarket:
    # pydantic is imported with the first row, not by every command that names a source.
    from markets.sources.polymarket.parsing import parse_market

    return parse_market(raw, ref)


def _page(raws: list[Any], cursor: str | None, ref: str) -> CataloguePage:
    return CataloguePage.of([_parsed(raw, f"{ref}, row {n}") for n, raw in enumerate(raws, start=1)], cursor)


def _has_no_keyset(error: UpstreamError) -> bool:
    return error.status in {404, 405} or (error.status == 503 and "not configured" in error.reason)
