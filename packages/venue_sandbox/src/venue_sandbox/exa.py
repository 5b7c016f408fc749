"""Exa's search API: made-up pages about whatever is asked, dated before the sandbox's clock."""

from datetime import timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

from venue_sandbox.http_messages import Refusal, Reply, Request
from venue_sandbox.seeded_random import seeded_random

HOSTS = (
    "news.example", "daily.example", "wire.example", "journal.example", "observer.example", "radio.example",
    "gazette.example", "polymarket.com", "kalshi.com",
)  # fmt: skip
OPENINGS = (
    "Officials said little when asked", "Analysts disagree", "Local papers wrote at length", "A new report weighs in",
    "Experts were cautious", "Observers pointed to earlier years", "Readers sent in their views",
)  # fmt: skip
MOST_RESULTS = 100


class Exa:
    """The endpoint `search`, with the text of each page. The same seed and query give the same pages."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def search(self, request: Request) -> Reply:
        if not request.headers.get("x-api-key"):
            raise _refused(401, "Invalid API key", "INVALID_API_KEY")
        try:
            body = request.json()
            query, number = body["query"], body.get("numResults", 10)
            characters = body.get("contents", {}).get("text", {}).get("maxCharacters", 10_000)
            excluded = tuple(body.get("excludeDomains", ()))
        except (ValueError, TypeError, KeyError, AttributeError):
            raise _refused(400, "Invalid request body", "INVALID_REQUEST_BODY") from None
        if not isinstance(query, str) or not query.strip() or not 1 <= number <= MOST_RESULTS:
            raise _refused(400, "Invalid request body", "INVALID_REQUEST_BODY")
        pages = [self._page(request, query, place, characters) for place in range(2 * len(OPENINGS))]
        results = [page for page in pages if not _is_of(page["url"], excluded)][:number]
        cost = Decimal("0.007") + Decimal("0.001") * max(0, len(results) - 10)
        return Reply(
            200,
            {
                "requestId": sha256(request.body).hexdigest()[:32],
                "resolvedSearchType": "neural",
                "results": results,
                "searchTime": 412.7,
                "costDollars": {"total": cost, "search": {"neural": cost}},
            },
        )

    def _page(self, request: Request, query: str, place: int, characters: int) -> dict[str, Any]:
        draw = seeded_random(self.seed, "exa", query, place)
        published = (request.at - timedelta(hours=draw.randrange(12, 1000))).replace(minute=0, second=0, microsecond=0)
        host, opening = draw.choice(HOSTS), OPENINGS[place % len(OPENINGS)]
        url = f"https://{host}/{published:%Y/%m/%d}/{place}-{draw.randrange(10**6)}"
        days = draw.randrange(3, 60)
        text = f"{opening}: {query} It has been {days} days since anybody gave a number. " * draw.randrange(3, 12)
        return {
            "id": url,
            "title": f"{opening}, {days} days on",
            "url": url,
            "publishedDate": published.strftime("%Y-%m-%dT%H:%M:%S.000Z") if draw.random() < 0.8 else None,
            "author": None,
            "text": text.strip()[:characters],
        }


def _is_of(url: str, hosts: tuple[str, ...]) -> bool:
    host = urlsplit(url).hostname or ""
    return any(host == name or host.endswith(f".{name}") for name in hosts)


def _refused(status: int, message: str, tag: str) -> Refusal:
    return Refusal(Reply(status, {"requestId": "0" * 32, "error": message, "tag": tag}))
