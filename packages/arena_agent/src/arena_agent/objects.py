"""Tasks and answers of an agent: frozen objects with the words of the prompt blocks."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """A text about a question, found before its freeze."""

    title: str
    source: str
    url: str
    published: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its options; prices, spreads and volume are None where the task shows none."""

    id: str
    text: str
    rules: str
    exclusive: bool
    options: tuple[str, ...]
    prices: Mapping[str, float] | None = None
    closes: str | None = None
    event: str | None = None
    evidence: tuple[Evidence, ...] = ()
    spread: Mapping[str, float | None] | None = None
    volume_24h: float | None = None

    def even(self) -> dict[str, float]:
        """The forecast of someone who knows nothing: equal shares, or one half each if options are not exclusive."""
        share = 1 / len(self.options) if self.exclusive else 0.5
        return dict.fromkeys(self.options, share)

    def market(self) -> dict[str, float] | None:
        """The market's forecast: its prices, divided by their sum if options are exclusive; None without prices."""
        if not self.prices:
            return None
        total = sum(self.prices.values()) if self.exclusive else 1.0
        return {option: price / total for option, price in self.prices.items()} if total else None


@dataclass(frozen=True, slots=True)
class Market:
    """A market of the week, with the frozen price of each side; None where a side has no price."""

    id: str
    text: str
    category: str
    prices: Mapping[str, float | None]
    volume: float | None = None
    closes: str | None = None
    event: str | None = None
    rules: str = ""
    spread: float | None = None
    volume_24h: float | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """An open position of the agent, valued at the frozen prices."""

    id: str
    market: str
    text: str
    side: str
    shares: Decimal
    entry_price: Decimal | None
    price: Decimal | None
    value: Decimal
    pnl: Decimal


@dataclass(frozen=True, slots=True)
class Portfolio:
    """The agent's cash and positions in one cohort; `max_bet` is the largest legal first bet."""

    cash: Decimal
    max_bet: Decimal
    positions: tuple[Position, ...]
    positions_value: Decimal
    total_value: Decimal
    pnl: Decimal
    week: int
    date: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """A probability for each option, and the rationale in words."""

    probabilities: Mapping[str, Any]
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Bet:
    """A bet of `amount` dollars on one side of a market, which is given whole or by its id; `reason` says why."""

    market: Market | str | int
    side: str
    amount: Decimal | float | str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Sell:
    """The sale of `percentage` (1 to 100) of a position, which is given whole or by its id."""

    position: Position | str | int
    percentage: Decimal | float | str = 100


@dataclass(frozen=True, slots=True)
class ArenaTask:
    """A task as it is shown: its id, its blocks by name, and its prompts where the arena gives them."""

    id: str
    blocks: Mapping[str, str]
    frozen_at: str = ""
    system_prompt: str = ""
    user_prompt: str = ""

    @property
    def trading(self) -> bool:
        """True if a decision is asked for, and no forecasts."""
        return "MARKETS" in self.blocks
