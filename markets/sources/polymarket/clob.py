"""The CLOB, Polymarket's order book: midpoints, the top of each book, and the winner's flag."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any
from urllib.parse import quote

from markets.http import HttpService, UpstreamError
from markets.sources.base import Book
from markets.sources.values import flag, identifier, line, number, price, shown

LARGEST_BATCH = 500
REFUSED_BATCH = frozenset({400, 404, 405, 422})
"""No batch endpoint, or one token in it that the CLOB will not hear of."""
PATIENCE = 3
"""Failures in a row after which asking token by token ends."""


@dataclass(frozen=True, slots=True)
class Midpoints:
    """What the CLOB would say of many tokens: prices, the tokens without one and why, and what failed."""

    prices: dict[str, Decimal] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Books:
    """The top of many books, the tokens without a usable book and why, and what failed."""

    books: dict[str, Book] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Winner:
    """The one outcome that the CLOB flags as the winner."""

    token_id: str
    outcome: str


class Clob(HttpService):
    """The client of the CLOB; options are those of `HttpService`."""

    def __init__(self, base_url: str, **options: Any) -> None:
        super().__init__("clob", base_url, **options)

    def midpoints(self, token_ids: Iterable[str]) -> Midpoints:
        """The midpoint of every token that has one; a batch that fails costs no other batch its prices."""
        found = Midpoints()

        def take(token: str, raw: object) -> None:
            try:
                found.prices[token] = price(raw)
            except ValueError as error:
                found.rejected[token] = f"midpoint {error}"

        for batch in _batches(token_ids):
            answer = self._batch("/midpoints", batch, dict, found.failed)
            if answer is None:
                self._one_by_one("/midpoint", batch, lambda t, raw: take(t, _mid(raw)), found)
                continue
            for token in batch if answer else ():
                if token in answer:
                    take(token, answer[token])
                else:
                    found.rejected[token] = "no midpoint in the answer"
        return found

    def books(self, token_ids: Iterable[str]) -> Books:
        """The best bid and ask of every token that has a book; failures are named, not raised."""
        found = Books()

        def take(token: str, raw: object) -> None:
            try:
                found.books[token] = _book(token, raw)
            except ValueError as error:
                found.rejected[token] = f"book: {error}"

        for batch in _batches(token_ids):
            answer = self._batch("/books", batch, list, found.failed)
            if answer is None:
                self._one_by_one("/book", batch, take, found)
                continue
            # A book belongs to the token that it names: the answer may come in any order.
            named = {identifier(raw.get("asset_id")): raw for raw in answer if isinstance(raw, dict)}
            for token in batch if answer else ():
                if token in named:
                    take(token, named[token])
                else:
                    found.rejected[token] = "no book in the answer"
        return found

    def winner(self, condition_id: str) -> Winner | None:
        """The market's only flagged winner; None if none or several are flagged, or there is no such market."""
        if not condition_id:
            return None
        path = f"/markets/{quote(condition_id, safe='')}"
        try:
            answer = self.get_json(path)
        except UpstreamError as error:
            if error.status == 404:
                return None
            raise
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(tokens, list):
            raise UpstreamError(self.service, f"GET {path} answered no list of tokens", status=200)
        flagged = [token for token in tokens if isinstance(token, dict) and _is_true(token.get("winner"))]
        if len(flagged) != 1 or not (token_id := identifier(flagged[0].get("token_id"))):
            return None
        return Winner(token_id, line(flagged[0].get("outcome")))

    def _batch(self, path: str, batch: list[str], form: type, failed: list[str]) -> Any:
        """The batch's answer; an empty one where it failed; None where tokens must be asked one by one."""
        try:
            answer = self.post_json(path, [{"token_id": token} for token in batch])
        except UpstreamError as error:
            if error.status in REFUSED_BATCH:
                return None
            failed.append(f"{error} ({len(batch)} tokens)")
            return form()
        if not isinstance(answer, form):
            failed.append(f"clob: POST {path} answered {shown(answer)} ({len(batch)} tokens)")
            return form()
        return answer

    def _one_by_one(
        self, path: str, batch: list[str], take: Callable[[str, object], None], found: Midpoints | Books
    ) -> None:
        failures = 0
        for place, token in enumerate(batch):
            try:
                take(token, self.get_json(path, {"token_id": token}))
                failures = 0
            except UpstreamError as error:
                if error.status in REFUSED_BATCH:
                    found.rejected[token] = error.reason
                    continue
                found.failed.append(str(error))
                failures += 1
                if failures == PATIENCE:
                    left = len(batch) - place - 1
                    found.failed.append(f"clob: GET {path} failed {PATIENCE} times: {left} tokens not asked")
                    return


def _batches(token_ids: Iterable[str]) -> Iterator[list[str]]:
    tokens = iter(dict.fromkeys(token_ids))
    while batch := list(islice(tokens, LARGEST_BATCH)):
        yield batch


def _mid(raw: object) -> object:
    return raw.get("mid", raw.get("mid_price")) if isinstance(raw, dict) else raw


def _book(token: str, raw: object) -> Book:
    if isinstance(raw, dict):
        bids, asks = _levels(raw, "bids"), _levels(raw, "asks")
        return Book(token, bid=max(bids, default=None), ask=min(asks, default=None))
    raise ValueError(f"{shown(raw)} is not a book")


def _levels(raw: dict[str, Any], side: str) -> list[Decimal]:
    """The prices on one side, in whatever order; a level without size is no offer."""
    levels = raw.get(side)
    if levels is None:
        return []
    if not isinstance(levels, list) or not all(isinstance(level, dict) for level in levels):
        raise ValueError(f"{side} {shown(levels)} is not a list of levels")
    return [price(level.get("price")) for level in levels if number(level.get("size", 1)) > 0]


def _is_true(raw: object) -> bool:
    try:
        return flag(raw) is True
    except ValueError:
        return False
