"""Selection of a day's questions from the candidates, by the methodology's rule. Pure functions, no database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markets.selection_rule import SelectionRule


@dataclass(frozen=True, slots=True)
class CandidateOption:
    """An option, with the market id and side that pay if it happens; no market for "None of these"."""

    name: str
    market: int | None = None
    side: str = ""


@dataclass(frozen=True, slots=True)
class QuestionCandidate:
    """A question that may be selected. `key` identifies it; `event_key` is shared by candidates of one event."""

    source: str
    key: str
    event_key: str
    text: str
    rules: str
    category: str
    exclusive: bool
    options: tuple[CandidateOption, ...]
    volume: Decimal
    closes_at: datetime | None
    event: str = ""
    volume_24h: Decimal | None = None

    @property
    def market_ids(self) -> frozenset[int]:
        return frozenset(option.market for option in self.options if option.market is not None)

    @property
    def only_market_id(self) -> int | None:
        """Its market's id; None if it joins several."""
        return next(iter(self.market_ids)) if len(self.market_ids) == 1 else None


def market_ids(candidates: Iterable[QuestionCandidate]) -> set[int]:
    """The ids of all markets of the candidates."""
    return set(chain.from_iterable(candidate.market_ids for candidate in candidates))


def rank_candidates(
    candidates: Iterable[QuestionCandidate], rule: SelectionRule, at: datetime
) -> list[QuestionCandidate]:
    """Qualifying candidates, one per event: those that close within the horizon first, then by volume, ties by key."""

    soonest, latest = at + timedelta(days=rule.soonest_days), at + timedelta(days=rule.latest_days)

    def sort_key(candidate: QuestionCandidate) -> tuple[bool, Decimal, int, str]:
        closes = candidate.closes_at
        within_horizon = closes is not None and soonest <= closes <= latest
        return not within_horizon, -candidate.volume, len(candidate.key), candidate.key

    event_keys: set[str] = set()
    ordered = []
    for candidate in sorted(candidates, key=sort_key):
        if candidate.event_key in event_keys or not _qualifies(candidate, rule):
            continue
        event_keys.add(candidate.event_key)
        ordered.append(candidate)
    return ordered


def select_candidates(
    ordered: Sequence[QuestionCandidate],
    rule: SelectionRule,
    limit: int,
    usable: Callable[[QuestionCandidate], bool] = lambda _: True,
) -> list[QuestionCandidate]:
    """The first `limit` usable candidates; a category exceeds its limit only where no other is left."""
    selected: list[QuestionCandidate] = []
    over_limit: list[QuestionCandidate] = []
    counts: dict[str, int] = {}
    for candidate in filter(usable, ordered):
        if counts.get(candidate.category, 0) < rule.category_limit:
            counts[candidate.category] = counts.get(candidate.category, 0) + 1
            selected.append(candidate)
        else:
            over_limit.append(candidate)
    selected = (selected + over_limit)[:limit]
    return sorted(selected, key=ordered.index)


def _qualifies(candidate: QuestionCandidate, rule: SelectionRule) -> bool:
    return candidate.volume >= rule.minimum_volume and 2 <= len(candidate.options) <= rule.most_options
