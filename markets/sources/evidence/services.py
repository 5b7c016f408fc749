"""Web searches: Exa and Tavily, each asked once for a query."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from foundation.heartbeats import parallel_results
from foundation.http import MIB, HttpService, UpstreamError
from markets.sources.evidence.base import (
    TEXTS_PER_QUERY,
    Clock,
    EvidenceAnswer,
    EvidenceText,
    SourceUnavailable,
    read_text,
)

AT_ONCE = 4
REFUSED_QUERIES = frozenset({400, 413, 414, 422})
"""Statuses that refuse one query; after any other failure the source counts as down."""
LONGEST_QUERY, MOST_WORDS = 400, 50
"""Characters and words; longer queries are refused by Tavily."""
PAGE_CHARACTERS = 3_000
"""Of the text of a page; more than any snippet shows."""


class SearchService(HttpService):
    """Base of the services, which differ in the request, and in the names of a result's fields."""

    name: str
    base: str
    query_usd: Decimal
    """The list price of a query, read in November 2026; `ARENA_EVIDENCE_QUERY_USD` replaces it."""
    key_header, key_prefix = "Authorization", "Bearer "
    is_stored = False

    def __init__(self, key: str, base_url: str, excluded_hosts: Sequence[str], **options: Any) -> None:
        self.excluded_hosts = list(excluded_hosts)
        headers = {self.key_header: f"{self.key_prefix}{key}"}
        super().__init__(self.name, base_url or self.base, headers=headers, keys=[key], max_bytes=16 * MIB, **options)

    def results(self, query: str) -> list[Any]:
        """The results for a query, sent anew where that may help. Raises UpstreamError."""
        raise NotImplementedError

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a result by the names that `read_text` knows."""
        raise NotImplementedError

    def texts(self, queries: Sequence[str], clock: Clock, seconds: float) -> EvidenceAnswer:
        """The texts for queries, four queries at a time. Raises SourceUnavailable if one gets no answer in time."""
        self.limit_total(seconds)
        try:
            answers = list(parallel_results(partial(self._texts, clock=clock), queries, AT_ONCE))
        except UpstreamError as error:
            raise SourceUnavailable(str(error)) from None
        return EvidenceAnswer.of(zip(queries, answers, strict=True))

    def _texts(self, query: str, *, clock: Clock) -> list[EvidenceText | None]:
        try:
            rows = self.results(" ".join(query.split()[:MOST_WORDS])[:LONGEST_QUERY])
        except UpstreamError as error:
            if error.status in REFUSED_QUERIES:
                return [None]
            raise
        retrieved_at = clock()
        texts: list[EvidenceText | None] = []
        for row in rows[:TEXTS_PER_QUERY]:
            texts.append(read_text(self.fields(row), retrieved_at) if isinstance(row, dict) else None)
        return texts


class Exa(SearchService):
    """https://api.exa.ai/search, with the text of each page."""

    name, base = "exa", "https://api.exa.ai"
    query_usd = Decimal("0.017")  # .007 for ten results, .001 for each further one
    key_header, key_prefix = "x-api-key", ""

    def results(self, query: str) -> list[Any]:
        body = {
            "query": query, "type": "auto", "numResults": TEXTS_PER_QUERY, "excludeDomains": self.excluded_hosts,
            "contents": {"text": {"maxCharacters": PAGE_CHARACTERS}},
        }  # fmt: skip
        return self.post_for_list("/search", body, "results")

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "published_at": row.get("publishedDate"), "source": ""}


class Tavily(SearchService):
    """https://api.tavily.com/search of news, the topic whose results state their dates."""

    name, base = "tavily", "https://api.tavily.com"
    query_usd = Decimal("0.016")  # two credits

    def results(self, query: str) -> list[Any]:
        body = {
            "query": query, "topic": "news", "search_depth": "advanced", "max_results": TEXTS_PER_QUERY,
            "exclude_domains": self.excluded_hosts,
        }  # fmt: skip
        return self.post_for_list("/search", body, "results")

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "published_at": row.get("published_date"), "text": row.get("content"), "source": ""}


SERVICES: dict[str, type[SearchService]] = {service.name: service for service in (Exa, Tavily)}
