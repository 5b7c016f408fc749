"""The exchange's listing: the events, markets and races described by `fixtures/season.json`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from hashlib import sha256
from itertools import chain, count, repeat
from pathlib import Path
from typing import Annotated, Literal
from unicodedata import normalize

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

SEASON = Path(__file__).parent / "fixtures" / "season.json"
YES_NO = ("Yes", "No")
ALREADY_LISTED = -10.0  # days: a market is ten days old when the season starts
WEEKLY_NOTICE = 8.0  # days between the listing of a match or weekly question and its close

Days = Annotated[float, Field(allow_inf_nan=False)]
Window = tuple[Days, Days | None]


class ResolutionKind(StrEnum):
    """The ways in which a market resolves; all but PLAIN are special cases seen on the real exchange."""

    PLAIN = "plain"
    EVEN = "even"
    """The oracle pays every outcome the same."""
    DISPUTED = "disputed"
    """The proposal is disputed for days while the price says that it is over."""
    SILENT = "silent"
    """The oracle's status never appears; only the CLOB's winner flags tell."""
    RESIDUE = "residue"
    """Closed with a residual price and without a winner, for good."""


@dataclass(frozen=True, slots=True)
class Race:
    """A contest that exactly one of its runners wins, decided when it ends."""

    name: str
    runners: int
    starts: datetime
    ends: datetime


@dataclass(frozen=True, slots=True)
class Market:
    """One question; its outcomes are the runners of its race, or Yes and No for the `runner` named."""

    id: str
    event_id: str
    question: str
    outcomes: tuple[str, ...]
    race: Race
    runner: int | None = None
    label: str = ""
    tick: Decimal = Decimal("0.01")
    resolution: ResolutionKind = ResolutionKind.PLAIN
    absent: tuple[datetime, datetime] | None = None
    """A period in which no endpoint knows it."""
    one_sided: tuple[datetime, datetime] | None = None
    """A period without bids for its first outcome."""
    undated: bool = False
    kind: str | None = None
    """The venue's `sportsMarketType`."""
    version: str = "v1"
    """The venue's protocol: one of v2 has position ids, and shows no resolution that is documented."""

    @property
    def lists(self) -> datetime:
        return self.race.starts

    @property
    def closes(self) -> datetime:
        return self.race.ends

    @property
    def condition_id(self) -> str:
        return "0x" + _digest("condition", self.question)

    @property
    def question_id(self) -> str:
        return "0x" + _digest("question", self.question)

    @property
    def tokens(self) -> tuple[str, ...]:
        return tuple(str(int(_digest("token", self.question, i), 16)) for i in range(len(self.outcomes)))

    @property
    def slug(self) -> str:
        return slugify(self.question)


@dataclass(frozen=True, slots=True)
class Event:
    """Markets that belong together; `exclusive` when at most one of them ends in Yes."""

    id: str
    title: str
    category: str
    tags: tuple[str, ...]
    markets: tuple[Market, ...]
    exclusive: bool = False

    @property
    def slug(self) -> str:
        return slugify(self.title)


@dataclass(frozen=True, slots=True)
class Season:
    """All events of a season, in the order of their ids."""

    starts: datetime
    events: tuple[Event, ...]
    recurs: timedelta | None = None
    """The period after which it repeats with new markets; None where it is played once."""

    @property
    def markets(self) -> tuple[Market, ...]:
        return tuple(market for event in self.events for market in event.markets)

    def since(self, at: datetime) -> timedelta:
        """The time since the start of the season or its current repetition."""
        return (at - self.starts) % self.recurs if self.recurs else at - self.starts


def load_season() -> Season:
    """The season written in the fixture."""
    script = _Script.model_validate_json(SEASON.read_bytes())
    return Season(script.starts, tuple(_events(script)))


def slugify(text: str) -> str:
    """The text as a venue's address has it: lower-case ASCII letters, digits and single dashes."""
    ascii_text = normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_text)).strip("-_")


def _digest(*key: object) -> str:
    return sha256("/".join(map(str, key)).encode()).hexdigest()


class FixtureEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Single(FixtureEntry):
    ask: str
    closes: Days
    lists: Days = ALREADY_LISTED
    outcomes: tuple[str, ...] = YES_NO
    tick: Decimal = Decimal("0.01")
    resolution: ResolutionKind = ResolutionKind.PLAIN
    absent: Window | None = None
    one_sided: Window | None = None
    undated: bool = False
    version: Literal["v1", "v2"] = "v1"


class _Contest(_Single):
    category: str
    outcomes: tuple[str, ...]


class _Group(FixtureEntry):
    title: str
    category: str
    ask: str
    names: tuple[str, ...]
    closes: Days
    lists: Days = ALREADY_LISTED


class _Round(FixtureEntry):
    day: Days
    games: tuple[tuple[str, str], ...]
    totals: tuple[Decimal, ...]
    """The over/under line of the first games, in their order."""


class _League(FixtureEntry):
    league: str
    rounds: tuple[_Round, ...]


class _Series(FixtureEntry):
    ask: str
    category: str
    outcomes: tuple[str, str]
    closes: tuple[Days, ...]


class _Script(FixtureEntry):
    about: str
    starts: AwareDatetime
    singles: dict[str, tuple[_Single, ...]]
    groups: tuple[_Group, ...]
    contests: tuple[_Contest, ...]
    matches: tuple[_League, ...]
    series: tuple[_Series, ...]

    def at(self, day: float) -> datetime:
        """The instant that many days into the season, to the whole minute."""
        return self.starts + timedelta(minutes=round(day * 24 * 60))

    def span(self, window: Window | None) -> tuple[datetime, datetime] | None:
        if window is None:
            return None
        start, end = window
        return self.at(start), datetime.max.replace(tzinfo=UTC) if end is None else self.at(end)


def _events(script: _Script) -> Iterator[Event]:
    event_ids = map(str, count(70_101))
    market_ids = map(str, count(810_001))

    def race(name: str, runners: int, lists: float, closes: float) -> Race:
        return Race(name, runners, script.at(lists), script.at(closes))

    def single(entry: _Single, category: str) -> Event:
        event_id = next(event_ids)
        market = Market(
            next(market_ids),
            event_id,
            entry.ask,
            entry.outcomes,
            race(entry.ask, len(entry.outcomes), entry.lists, entry.closes),
            tick=entry.tick,
            resolution=entry.resolution,
            absent=script.span(entry.absent),
            one_sided=script.span(entry.one_sided),
            undated=entry.undated,
            version=entry.version,
        )
        return Event(event_id, entry.ask, category, (category,), (market,))

    def group(entry: _Group) -> Event:
        event_id = next(event_ids)
        contest = race(entry.title, len(entry.names), entry.lists, entry.closes)
        markets = tuple(
            Market(next(market_ids), event_id, entry.ask.format(name), YES_NO, contest, runner=runner, label=name)
            for runner, name in enumerate(entry.names)
        )
        return Event(event_id, entry.title, entry.category, (entry.category,), markets, exclusive=True)

    def match(league: str, day: float, teams: tuple[str, str], line: Decimal | None) -> Event:
        event_id, title = next(event_ids), " vs. ".join(teams)
        lists = weekly_listing(day)
        markets = [Market(next(market_ids), event_id, title, teams, race(title, 2, lists, day), kind="moneyline")]
        if line is not None:
            label = f"O/U {line}"
            question = f"{title}: {label}"
            total = race(question, 2, lists, day)
            over_under = ("Over", "Under")
            markets.append(Market(next(market_ids), event_id, question, over_under, total, label=label, kind="totals"))
        return Event(event_id, title, "Sports", ("Sports", league), tuple(markets))

    def edition(series: _Series, day: float) -> Event:
        question = series.ask.format(f"{script.at(day):%B} {script.at(day).day}")
        entry = _Single(ask=question, closes=day, lists=weekly_listing(day), outcomes=series.outcomes)
        return single(entry, series.category)

    def weekly_listing(day: float) -> float:
        return max(day - WEEKLY_NOTICE, ALREADY_LISTED)

    for category, entries in script.singles.items():
        yield from (single(entry, category) for entry in entries)
    yield from map(group, script.groups)
    yield from (single(entry, entry.category) for entry in script.contests)
    for league in script.matches:
        for round_ in league.rounds:
            for teams, line in zip(round_.games, chain(round_.totals, repeat(None)), strict=False):
                yield match(league.league, round_.day, teams, line)
    yield from (edition(series, day) for series in script.series for day in series.closes)
