"""Which questions a day asks: a stated rule that gives the same list to whoever applies it. Pure, no database."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class ChoiceRule:
    """How many questions a day asks and what qualifies for them."""

    questions: int
    per_sheet: int
    most_options: int
    minimum_volume: Decimal
    soonest: timedelta
    latest: timedelta
    category_limit: int
    arms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """An answer to a question: what it is called, and the market and side that pay if it happens (none: no market)."""

    name: str
    market: int | None = None
    side: str = ""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that could be asked. `key` tells it from others, `event_key` is shared by those of one event."""

    source: str
    key: str
    event_key: str
    text: str
    rules: str
    category: str
    exclusive: bool
    options: tuple[Option, ...]
    volume: Decimal
    closes_at: datetime | None

    @property
    def markets(self) -> frozenset[int]:
        return frozenset(option.market for option in self.options if option.market is not None)

    @property
    def single(self) -> int | None:
        """The one market it is about; None where it joins several."""
        return next(iter(self.markets)) if len(self.markets) == 1 else None


def in_order(candidates: Iterable[Candidate], rule: ChoiceRule, at: datetime) -> list[Candidate]:
    """Those that qualify, one for each event: within the horizon first, then the larger volume, ties by key."""

    def place(candidate: Candidate) -> tuple[bool, Decimal, int, str]:
        closes = candidate.closes_at
        near = closes is not None and at + rule.soonest <= closes <= at + rule.latest
        return not near, -candidate.volume, len(candidate.key), candidate.key

    seen: set[str] = set()
    ordered = []
    for candidate in sorted(candidates, key=place):
        if candidate.event_key in seen or not _qualifies(candidate, rule):
            continue
        seen.add(candidate.event_key)
        ordered.append(candidate)
    return ordered


def choose(
    ordered: Sequence[Candidate], rule: ChoiceRule, most: int, usable: Callable[[Candidate], bool] = lambda _: True
) -> list[Candidate]:
    """The first `most` usable ones in their order, no category above its limit before every other had its turn."""
    taken: list[Candidate] = []
    passed_over: list[Candidate] = []
    counts: dict[str, int] = {}
    for candidate in filter(usable, ordered):
        if counts.get(candidate.category, 0) < rule.category_limit:
            counts[candidate.category] = counts.get(candidate.category, 0) + 1
            taken.append(candidate)
        else:
            passed_over.append(candidate)
    chosen = (taken + passed_over)[:most]
    return sorted(chosen, key=ordered.index)


def _qualifies(candidate: Candidate, rule: ChoiceRule) -> bool:
    return candidate.volume >= rule.minimum_volume and 2 <= len(candidate.options) <= rule.most_options
