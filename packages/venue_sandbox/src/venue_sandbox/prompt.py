"""The blocks of the arena's user message, parsed."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Offer:
    """One side of a market that can be bought."""

    market_id: str
    question: str
    side: str
    price: Decimal
    volume: Decimal
    category: str


class Holding(BaseModel):
    """A position whose market is on offer, so that it can be sold now: a row of the POSITIONS block."""

    position_id: str
    market_id: str
    question: str
    side: str
    entry_price: Decimal
    price: Decimal

    @property
    def gain(self) -> Decimal:
        """Price over entry price, less one."""
        return self.price / self.entry_price - 1


@dataclass(frozen=True, slots=True)
class Prompt:
    """The blocks as values, and the text after the last one, which on a retry holds the complaint."""

    cash: Decimal
    week: int
    date: str
    holdings: tuple[Holding, ...]
    held_markets: frozenset[str]
    """Every market held, sellable or not."""
    offers: tuple[Offer, ...]
    trailing_text: str

    @classmethod
    def read(cls, text: str) -> "Prompt":
        """Parses a user message. Raises ValueError with the missing or invalid block."""
        lines = text.split("\n")  # not splitlines: a question may hold other breaks
        portfolio, _ = block(lines, "PORTFOLIO")
        positions, _ = block(lines, "POSITIONS")
        markets, end = block(lines, "MARKETS")
        try:
            (context,) = portfolio
            offers = tuple(offer for row in table(markets) for offer in _offers(row))
            on_offer = {offer.market_id for offer in offers}
            position_rows = list(table(positions))
            return cls(
                cash=Decimal(context["cash"]),
                week=int(context["week"]),
                date=str(context["date"]),
                holdings=tuple(
                    Holding(**row) for row in position_rows if row["market_id"] in on_offer and row["price"]
                ),
                held_markets=frozenset(row["market_id"] for row in position_rows),
                offers=offers,
                trailing_text="\n".join(lines[end:]),
            )
        except (KeyError, TypeError, ValueError, ArithmeticError) as why:
            raise ValueError(f"the blocks are invalid: {why!r}") from why


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model, with the blocks of its user message as plain JSON values."""

    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        model: str = self.body["model"]
        return model

    @property
    def user(self) -> str:
        text: str = self.body["messages"][1]["content"]
        return text

    def block(self, heading: str) -> list[Any]:
        return block(self.user.split("\n"), heading, float)[0]

    @property
    def portfolio(self) -> dict[str, Any]:
        portfolio: dict[str, Any] = self.block("PORTFOLIO")[0]
        return portfolio

    @property
    def positions(self) -> list[dict[str, Any]]:
        return table(self.block("POSITIONS"))

    @property
    def markets(self) -> list[dict[str, Any]]:
        return table(self.block("MARKETS"))

    @property
    def questions(self) -> list[dict[str, Any]]:
        return table(self.block("QUESTIONS"))

    def market_id(self, question: str) -> str:
        market_id: str = next(row["market_id"] for row in self.markets if row["question"] == question)
        return market_id


def block(lines: list[str], heading: str, number: Callable[[str], Any] = Decimal) -> tuple[list[Any], int]:
    """The JSON values under a heading line, fractions as `number` makes them, and the number of the line after them."""
    if heading not in lines:
        raise ValueError(f"there is no {heading} block")
    start = end = lines.index(heading) + 1
    while end < len(lines) and lines[end].startswith(("[", "{")):
        end += 1
    return [json.loads(line, parse_float=number) for line in lines[start:end]], end


def table(rows: list[list[Any]]) -> list[dict[str, Any]]:
    """Rows under their header row, by column name."""
    header, *body = rows or [[]]
    return [dict(zip(header, row, strict=True)) for row in body]


def _offers(row: dict[str, Any]) -> list[Offer]:
    volume, category = Decimal(row["volume_usd"] or 0), row["category"] or ""
    prices = {side: Decimal(price) for side, price in row["prices"].items() if price is not None}
    return [
        Offer(row["market_id"], row["question"], side, price, volume, category)
        for side, price in prices.items()
        if 0 < price < 1
    ]
