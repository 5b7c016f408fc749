"""Quotes of a question's options at its freeze, from those of the markets behind them. No database."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from foundation.json_lines import json_number
from markets.question_selection import QuestionCandidate


@dataclass(frozen=True, slots=True)
class Quote:
    """The mid price of one side of a market at the freeze, its ask and the ask of the other side, and the spread."""

    price: Decimal | None
    ask: Decimal | None
    no_ask: Decimal | None
    stale: bool
    spread: Decimal | None = None

    def as_json(self) -> dict[str, Any]:
        numbers = {"price": self.price, "ask": self.ask, "no_ask": self.no_ask}
        stored: dict[str, Any] = {}
        for name, number in numbers.items():
            stored[name] = None if number is None else json_number(number)
        return stored | {"stale": self.stale}


NO_QUOTE = Quote(None, None, None, True)
Quotes = Mapping[tuple[int, str], Quote]


def current_ask(ask: Decimal | None, price: Decimal | None) -> Decimal | None:
    """The ask, or None if it is below the mid price and so older than the price."""
    return None if ask is None or price is None or ask < price else ask


def is_priced(candidate: QuestionCandidate, quotes: Quotes, *, certain: bool = False) -> bool:
    """True if every option has a price and, unless `certain` ones are allowed, at least two lie inside (0, 1)."""
    prices = [quote.price for quote in option_quotes_of(candidate, quotes).values()]
    inside = sum(price is not None and 0 < price < 1 for price in prices)
    return None not in prices and (inside >= 2 or certain)


def option_quotes_of(candidate: QuestionCandidate, quotes: Quotes) -> dict[str, Quote]:
    """The quote of each option, by its name; an option without a market has what the others leave of 1."""
    option_quotes = {}
    remainder, stale = Decimal(1), False
    for option in candidate.options:
        if option.market is not None:
            quote = quotes.get((option.market, option.side), NO_QUOTE)
            remainder -= quote.price or 0
            stale = stale or quote.stale
            option_quotes[option.name] = quote
    remainder_quote = Quote(max(Decimal(0), remainder), None, None, stale)
    return {option.name: option_quotes.get(option.name, remainder_quote) for option in candidate.options}
