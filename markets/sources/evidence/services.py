"""Web searches: Exa, Tavily, Brave and AskNews, each asked once for a query."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from foundation.http import MIB, HttpService, UpstreamError
from foundation.parallel_requests import parallel_results
from markets.sources.evidence.base import (
    TEXTS_PER_QUERY,
    Clock,
    EvidenceAnswer,
    EvidenceText,
    SourceUnavailable,
    read_text,
    read_texts,
)

AT_ONCE = 4
REFUSED_QUERIES = frozenset({400, 413, 414, 422})
"""Statuses that refuse one query; after any other failure the source counts as down."""
LONGEST_QUERY = 400
"""Characters; more are refused by Brave and Tavily."""
PAGE_CHARACTERS = 3_000
"""Of the text of a page; more than any snippet shows."""


class SearchService(HttpService):
    """Base of the services: `request` and `rows` are all in which they differ."""

    name: str
    base: str
    is_stored = False

    def __init__(self, key: str, base_url: str = "", excluded_hosts: Sequence[str] = (), **options: Any) -> None:
        self.excluded_hosts = list(excluded_hosts)
        super().__init__(self.name, base_url or self.base, headers=self.key_header(key), max_bytes=16 * MIB, **options)

    def key_header(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def request(self, query: str) -> Any:
        """The answer to a query, which is sent anew where that may help. Raises UpstreamError."""
        raise NotImplementedError

    def rows(self, answer: Mapping[str, Any]) -> Any:
        """The list of results in an answer, each with the names of `fields`."""
        return answer.get("results")

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a result by the names that `read_text` knows."""
        raise NotImplementedError

    def texts(self, queries: Sequence[str], clock: Clock, seconds: float) -> EvidenceAnswer:
        """The texts for queries, four queries at a time. Raises SourceUnavailable if one gets no answer in time."""
        self.limit_total(seconds)
        texts: dict[str, list[EvidenceText]] = {}
        unreadable = 0
        try:
            answers = parallel_results(partial(self._texts, clock=clock), queries, AT_ONCE)
            for query, rows in zip(queries, answers, strict=True):
                texts[query], faults = read_texts(rows)
                unreadable += faults
        except UpstreamError as error:
            raise SourceUnavailable(str(error)) from None
        return EvidenceAnswer(texts, unreadable)

    def _texts(self, query: str, *, clock: Clock) -> list[EvidenceText | None]:
        try:
            answer = self.request(query[:LONGEST_QUERY])
        except UpstreamError as error:
            if error.status in REFUSED_QUERIES:
                return [None]
            raise
        rows = self.rows(answer) if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise UpstreamError(self.service, "answered no list of results", status=200)
        retrieved_at = clock()
        texts: list[EvidenceText | None] = []
        for row in rows[:TEXTS_PER_QUERY]:
            texts.append(read_text(self.fields(row), retrieved_at) if isinstance(row, dict) else None)
        return texts


class Exa(SearchService):
    """https://api.exa.ai/search, with the text of each page."""

    name, base = "exa", "https://api.exa.ai"

    def key_header(self, key: str) -> dict[str, str]:
        return {"x-api-key": key}

    def request(self, query: str) -> Any:
        body = {
            "query": query, "type": "auto", "numResults": TEXTS_PER_QUERY, "excludeDomains": self.excluded_hosts,
            "contents": {"text": {"maxCharacters": PAGE_CHARACTERS}},
        }  # fmt: skip
        return self.post_json("/search", body)

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "published_at": row.get("publishedDate"), "source": ""}


class Tavily(SearchService):
    """https://api.tavily.com/search of news, the topic whose results state their dates."""

    name, base = "tavily", "https://api.tavily.com"

    def request(self, query: str) -> Any:
        body = {
            "query": query, "topic": "news", "search_depth": "advanced", "max_results": TEXTS_PER_QUERY,
            "exclude_domains": self.excluded_hosts,
        }  # fmt: skip
        return self.post_json("/search", body)

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {**row, "published_at": row.get("published_date"), "text": row.get("content"), "source": ""}


class Brave(SearchService):
    """https://api.search.brave.com, a web search; the text is the result's snippets."""

    name, base = "brave", "https://api.search.brave.com/res/v1"

    def key_header(self, key: str) -> dict[str, str]:
        return {"X-Subscription-Token": key}

    def request(self, query: str) -> Any:
        words = " ".join(query.split()[:50])  # more are refused
        parameters = {"q": words, "count": TEXTS_PER_QUERY, "extra_snippets": "true", "text_decorations": "false"}
        return self.get_json("/web/search", parameters)

    def rows(self, answer: Mapping[str, Any]) -> Any:
        web = answer.get("web")
        return web.get("results") if isinstance(web, dict) else []  # nothing found: no such part

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        profile, further = row.get("profile"), row.get("extra_snippets")
        snippets = [row.get("description"), *(further if isinstance(further, list) else [])]
        return {
            **row,
            "published_at": row.get("page_age"),
            "source": profile.get("name") if isinstance(profile, dict) else "",
            "text": "\n".join(_texts_among(snippets)),
        }


class AskNews(SearchService):
    """https://api.asknews.app, news with a summary of each article."""

    name, base = "asknews", "https://api.asknews.app/v1"

    def request(self, query: str) -> Any:
        parameters = {"query": query, "n_articles": TEXTS_PER_QUERY, "return_type": "dicts", "method": "kw"}
        return self.get_json("/news/search", parameters)

    def rows(self, answer: Mapping[str, Any]) -> Any:
        return answer.get("as_dicts")

    def fields(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "title": row.get("eng_title") or row.get("title"),
            "url": row.get("article_url"),
            "source": row.get("source_id"),
            "published_at": row.get("pub_date"),
            "text": row.get("summary"),
        }


def _texts_among(values: Iterable[object]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


SERVICES: dict[str, type[SearchService]] = {service.name: service for service in (Exa, Tavily, Brave, AskNews)}
