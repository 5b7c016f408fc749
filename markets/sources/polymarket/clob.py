"""Client of the CLOB, Polymarket's order books: midpoints, best bids and asks, and the winning token."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import islice
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from foundation.http import HttpService, UpstreamError
from markets.sources.base import TopOfBook
from markets.sources.field_parsers import LARGEST_AMOUNT, flag_or_none, identifier, line, number, price, shown

Value = TypeVar("Value")
LARGEST_BATCH = 500
REFUSED_BATCH = frozenset({400, 404, 405, 422})
"""Statuses of a missing batch endpoint, or of a batch with a token that the CLOB refuses."""
MAX_FAILURES = 3
"""Consecutive failures after which requests for single tokens end."""


@dataclass(frozen=True, slots=True)
class TokenValues(Generic[Value]):
    """Values by token, reasons for tokens without a usable one, and failed requests."""

    values: dict[str, Value] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


Level = tuple[Decimal, Decimal]
"""A price, and the shares that are offered or sought at it."""


@dataclass(frozen=True, slots=True)
class BookLevels:
    """The levels of an order book, on each side the best one first."""

    bids: Sequence[Level]
    asks: Sequence[Level]


@dataclass(frozen=True, slots=True)
class WinningToken:
    """The one outcome that the CLOB flags as the winner."""

    token_id: str
    outcome: str


class Clob(HttpService):
    """The client of the CLOB; options are those of `HttpService`."""

    def __init__(self, base_url: str, **options: Any) -> None:
        super().__init__("clob", base_url, **options)

    def midpoints(self, token_ids: Iterable[str]) -> TokenValues[Decimal]:
        """The midpoints of tokens; a failing batch does not affect the others."""
        return self._read("midpoint", token_ids, _midpoints_by_token, parse_midpoint)

    def books(self, token_ids: Iterable[str]) -> TokenValues[TopOfBook]:
        """The best bids and asks of tokens; failures are returned, not raised."""
        return self._read("book", token_ids, _books_by_token, parse_book)

    def order_books(self, token_ids: Iterable[str]) -> TokenValues[BookLevels]:
        """The whole books of tokens; failures are returned, not raised."""
        return self._read("book", token_ids, _books_by_token, parse_levels)

    def winner(self, condition_id: str) -> WinningToken | None:
        """The market's flagged winner; None unless exactly one token is flagged."""
        if not condition_id:
            return None
        path = f"/markets/{quote(condition_id, safe='')}"
        answer = self.find_json(path)
        if answer is None:
            return None
        try:
            return parse_winner(answer)
        except ValueError as error:
            raise UpstreamError(self.service, f"GET {path} answered {error}", status=200) from None

    def _read(
        self,
        noun: str,
        token_ids: Iterable[str],
        by_token: Callable[[Any], Mapping[Any, object]],
        parse: Callable[[str, object], Value],
    ) -> TokenValues[Value]:
        """The parsed value of each token, from batches if the CLOB takes them, else one by one."""
        result: TokenValues[Value] = TokenValues()

        def add(token: str, raw: object) -> None:
            try:
                result.values[token] = parse(token, raw)
            except ValueError as error:
                result.rejected[token] = f"{noun}: {error}"

        for batch in _batches(token_ids):
            try:
                answer = self.post_json(f"/{noun}s", [{"token_id": token} for token in batch])
                values = by_token(answer)
            except UpstreamError as error:
                if error.status in REFUSED_BATCH:
                    self._one_by_one(f"/{noun}", batch, add, result)
                else:
                    result.failed.append(f"{error} ({len(batch)} tokens)")
                continue
            except ValueError as error:
                result.failed.append(f"clob: POST /{noun}s answered {error} ({len(batch)} tokens)")
                continue
            for token in batch if answer else ():
                if token in values:
                    add(token, values[token])
                else:
                    result.rejected[token] = f"no {noun} in the answer"
        return result

    def _one_by_one(
        self, path: str, batch: list[str], add: Callable[[str, object], None], result: TokenValues[Value]
    ) -> None:
        failures = 0
        for place, token in enumerate(batch):
            try:
                add(token, self.get_json(path, {"token_id": token}))
                failures = 0
            except UpstreamError as error:
                if error.status in REFUSED_BATCH:
                    result.rejected[token] = error.reason
                    continue
                result.failed.append(str(error))
                failures += 1
                if failures == MAX_FAILURES:
                    number = len(batch) - place - 1
                    result.failed.append(f"clob: GET {path} failed {MAX_FAILURES} times: {number} tokens not asked")
                    return


def _batches(token_ids: Iterable[str]) -> Iterator[list[str]]:
    tokens = iter(dict.fromkeys(token_ids))
    while batch := list(islice(tokens, LARGEST_BATCH)):
        yield batch


def _midpoints_by_token(answer: object) -> dict[str, object]:
    """Each token's midpoint in the form of a single look-up. Raises ValueError for any other answer."""
    if not isinstance(answer, dict):
        raise ValueError(shown(answer))
    return {token: {"mid": value} for token, value in answer.items()}


def parse_midpoint(token: str, raw: object) -> Decimal:
    """The midpoint in an answer. Raises ValueError if there is none."""
    return price(raw.get("mid", raw.get("mid_price")) if isinstance(raw, dict) else raw)


def parse_winner(answer: object) -> WinningToken | None:
    """The winner that a market's answer flags; None unless exactly one is. Raises ValueError for any other answer."""
    tokens = answer.get("tokens") if isinstance(answer, dict) else None
    if not isinstance(tokens, list):
        raise ValueError("no list of tokens")
    flagged = [token for token in tokens if isinstance(token, dict) and flag_or_none(token.get("winner"))]
    if len(flagged) != 1 or not (token_id := identifier(flagged[0].get("token_id"))):
        return None
    return WinningToken(token_id, line(flagged[0].get("outcome")))


def _books_by_token(answer: object) -> dict[str | None, object]:
    """The books by the token that each names: their order may differ. Raises ValueError for any other answer."""
    if not isinstance(answer, list):
        raise ValueError(shown(answer))
    return {identifier(raw.get("asset_id")): raw for raw in answer if isinstance(raw, dict)}


def parse_book(token: str, raw: object) -> TopOfBook:
    """The best bid and ask of a book. Raises ValueError for any other answer."""
    book = parse_levels(token, raw)
    bid = book.bids[0][0] if book.bids else None
    return TopOfBook(token, bid=bid, ask=book.asks[0][0] if book.asks else None)


def parse_levels(token: str, raw: object) -> BookLevels:
    """The levels of a book. Raises ValueError for any other answer."""
    if not isinstance(raw, dict):
        raise ValueError(f"{shown(raw)} is not a book")
    return BookLevels(sorted(_levels(raw, "bids"), reverse=True), sorted(_levels(raw, "asks")))


def _levels(raw: dict[str, Any], side: str) -> list[Level]:
    """The levels on one side with a size above zero, in any order."""
    levels = raw.get(side)
    if levels is None:
        return []
    filled: list[Level] = []
    for level in levels if isinstance(levels, list) else [None]:
        if not isinstance(level, dict):
            raise ValueError(f"{side} {shown(levels)} is not a list of levels")
        value, size = price(level.get("price")), number(level.get("size", 1))
        if 0 < size < LARGEST_AMOUNT:
            filled.append((value, size))
    return filled
