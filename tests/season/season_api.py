"""The season's API and pages."""

from functools import cache
from typing import Any

import httpx
from selectolax.lexbor import LexborHTMLParser

from tests.season.running_site import Site


class SeasonApi:
    """A site's pages and its API, each address of which is requested once."""

    def __init__(self, site: Site) -> None:
        self.client = httpx.Client(base_url=site.url, timeout=60, follow_redirects=True)
        self.one = cache(self._one)
        self.status = cache(self._status)
        self.rows = cache(self._rows)

    def page(self, address: str) -> LexborHTMLParser:
        response = self.client.get(address)
        assert response.status_code == 200, f"{address}: {response.status_code}"
        return LexborHTMLParser(response.text)

    def _status(self, address: str) -> int:
        """The status to which an address leads."""
        return self.client.head(address).status_code

    def _one(self, path: str) -> Any:
        response = self.client.get(f"/api/v1/{path}")
        assert response.status_code == 200, f"{path}: {response.status_code} {response.text[:300]}"
        return response.json()

    def _rows(self, path: str) -> list[dict[str, Any]]:
        rows, listing = [], self._one(f"{path}{'&' if '?' in path else '?'}page_size=500")
        while True:
            rows += listing["results"]
            if not listing["next"]:
                return rows
            listing = self.client.get(listing["next"]).json()

    @property
    def names(self) -> dict[str, str]:
        """The slug of each family's display name."""
        return {family["display_name"]: family["slug"] for family in self.rows("families/")}
