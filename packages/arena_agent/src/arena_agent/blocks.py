"""Reads the blocks of JSON Lines of a task into objects."""

import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from arena_agent.objects import Evidence, Market, Portfolio, Position, Question

Value = TypeVar("Value")


class UnreadableBlock(ValueError):
    """A block is not what it should be; the message names the block and the line."""


def read_questions(blocks: Mapping[str, str]) -> tuple[Question, ...]:
    """The questions of a forecast task, each with its evidence. Raises UnreadableBlock."""
    return _read(_questions, blocks, "QUESTIONS")


def read_markets(blocks: Mapping[str, str]) -> tuple[Market, ...]:
    """The markets of a trading task. Raises UnreadableBlock."""
    return _read(_markets, blocks, "MARKETS")


def read_portfolio(blocks: Mapping[str, str]) -> Portfolio:
    """The agent's cash and positions. Raises UnreadableBlock."""
    return _read(_portfolio, blocks, "PORTFOLIO")


def _read(reader: Callable[[Mapping[str, str]], Value], blocks: Mapping[str, str], name: str) -> Value:
    """The value that a reader makes of the blocks; a value of a wrong type is a fault of the block."""
    try:
        return reader(blocks)
    except UnreadableBlock:
        raise
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
        raise UnreadableBlock(f"{name}: a value is not of its type: {type(error).__name__}: {error}") from error


def _questions(blocks: Mapping[str, str]) -> tuple[Question, ...]:
    evidence: dict[str, list[Evidence]] = {}
    for row in _rows(blocks, "EVIDENCE") if "EVIDENCE" in blocks else ():
        text = Evidence(
            title=row["title"], source=row["source"], url=row["url"], published=row["published"], text=row["text"]
        )
        evidence.setdefault(row["question_id"], []).append(text)
    return tuple(
        Question(
            id=row["question_id"],
            text=row["question"],
            rules=row["rules"],
            exclusive=row["exclusive"],
            options=tuple(row["options"]),
            prices=row["prices"] and _prices(row["prices"]),
            closes=row["closes"],
            event=row.get("event"),
            spread=row.get("spread") and _prices(row["spread"]),
            volume_24h=row.get("volume_24h_usd"),
            evidence=tuple(evidence.get(row["question_id"], ())),
        )
        for row in _rows(blocks, "QUESTIONS")
    )


def _markets(blocks: Mapping[str, str]) -> tuple[Market, ...]:
    return tuple(
        Market(
            id=row["market_id"],
            text=row["question"],
            category=row["category"],
            prices=_prices(row["prices"]),
            volume=row["volume_usd"],
            closes=row["closes"],
            event=row.get("event"),
            rules=row.get("rules") or "",
            spread=row.get("spread"),
            volume_24h=row.get("volume_24h_usd"),
        )
        for row in _rows(blocks, "MARKETS")
    )


def _portfolio(blocks: Mapping[str, str]) -> Portfolio:
    portfolio = _decode(_block(blocks, "PORTFOLIO"), "PORTFOLIO", 1)
    try:
        amounts = {
            name: Decimal(portfolio[name]) for name in ("cash", "max_bet", "positions_value", "total_value", "pnl")
        }
        week, date = portfolio["week"], portfolio["date"]
    except KeyError as error:
        raise UnreadableBlock(f"PORTFOLIO: {error} is missing") from None
    return Portfolio(positions=tuple(map(_position, _rows(blocks, "POSITIONS"))), week=week, date=date, **amounts)


def _position(row: Mapping[str, Any]) -> Position:
    entry_price, price = (row[name] and Decimal(row[name]) for name in ("entry_price", "price"))
    return Position(
        id=row["position_id"],
        market=row["market_id"],
        text=row["question"],
        side=row["side"],
        shares=Decimal(row["shares"]),
        entry_price=entry_price,
        price=price,
        value=Decimal(row["value"]),
        pnl=Decimal(row["pnl"]),
    )


def _prices(prices: Mapping[str, float | None]) -> dict[str, Any]:
    """Prices by option or side, as stated."""
    for name, price in prices.items():
        if price is not None and (isinstance(price, bool) or not isinstance(price, int | float)):
            raise TypeError(f"the price of {name!r} is no number")
    return dict(prices)


class _Row(dict[str, Any]):
    """A row by column; a missing column is named."""

    def __init__(self, block: str, columns: list[str], values: list[Any]) -> None:
        super().__init__(zip(columns, values, strict=True))
        self.block = block

    def __missing__(self, column: str) -> Any:
        raise UnreadableBlock(f"{self.block}: the column {column} is missing")


def _rows(blocks: Mapping[str, str], name: str) -> list[_Row]:
    header, *lines = _block(blocks, name).split("\n")
    columns = _decode(header, name, 1)
    if not isinstance(columns, list) or not all(isinstance(column, str) for column in columns):
        raise UnreadableBlock(f"{name}: its first line must name the columns")
    rows = []
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        values = _decode(line, name, number)
        if not isinstance(values, list) or len(values) != len(columns):
            raise UnreadableBlock(f"{name}: line {number} must be a list of {len(columns)} values")
        rows.append(_Row(name, columns, values))
    return rows


def _block(blocks: Mapping[str, str], name: str) -> str:
    if not isinstance(blocks.get(name), str):
        raise UnreadableBlock(f"the task has no block {name}")
    return blocks[name]


def _decode(line: str, name: str, number: int) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UnreadableBlock(f"{name}: line {number} is not JSON: {error}") from None
