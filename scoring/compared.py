"""Two families beside each other: one function for the page and the API."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Family
from cohorts.forecasting import BLIND, PRICED
from scoring.models import Leaderboard
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.services.forecast_boards import FORECAST
from scoring.services.head_to_head import (
    Disagreement,
    Meeting,
    Opposed,
    ReturnTest,
    disagreements,
    meetings,
    opposed,
)

ARMS = (PRICED, BLIND)
MOST = 10
"""Markets and questions that are named."""
Entry = Mapping[str, Any]
Pair = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Words:
    """What both said in one arm: their entries on its board, and the paired test of their difference."""

    arm: str
    first: Entry | None
    second: Entry | None
    pair: Pair | None
    pairs: int
    """Pairs of forecasters that p is corrected for."""
    bins: Mapping[str, Sequence[Mapping[str, Any]]]
    """Of each of the two, where there are any: the bins of its reliability."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is said of two families beside each other; differences are the first less the second."""

    first: Family
    second: Family
    first_bets: Entry | None
    second_bets: Entry | None
    words: Sequence[Words]
    meetings: Sequence[Meeting]
    test: ReturnTest | None
    opposed: Sequence[Opposed]
    against: int
    """Markets on which they put the most on different sides; `opposed` are those with the most at stake."""
    disagreements: Sequence[Disagreement]

    @property
    def first_ahead(self) -> int:
        return sum(each.first_return > each.second_return for each in self.meetings)

    @property
    def second_ahead(self) -> int:
        return sum(each.second_return > each.first_return for each in self.meetings)


def comparison(first: Family, second: Family) -> Comparison:
    """Both protocols, tests of the difference, and where the two disagreed the most."""
    boards = {
        (board.protocol, board.arm): board
        for board in Leaderboard.objects.filter(methodology=ALL_METHODOLOGIES, category="")
    }
    met, test = meetings(first, second)
    rows, against = opposed(first, second, most=MOST)
    bets = _entries(boards.get((TRADING, "")))
    return Comparison(
        first,
        second,
        bets.get(first.slug),
        bets.get(second.slug),
        [_words(boards[FORECAST, arm], first, second) for arm in ARMS if (FORECAST, arm) in boards],
        met,
        test,
        rows,
        against,
        disagreements(first, second, PRICED, most=MOST),
    )


def pairs_of(board: Leaderboard | None) -> dict[tuple[str, str], Pair]:
    """The paired tests on record by the two slugs, either way round; a difference is first less second."""
    found: dict[tuple[str, str], Pair] = {}
    for pair in board.report.get("pairs", []) if board else []:
        turned = None if pair["difference"] is None else -pair["difference"]
        found[pair["first"], pair["second"]] = pair
        found[pair["second"], pair["first"]] = pair | {"difference": turned}
    return found


def _words(board: Leaderboard, first: Family, second: Family) -> Words:
    entries = _entries(board)
    bins = board.report.get("curves", {}).get("reliability", {}).get("forecasters", {})
    return Words(
        board.arm,
        entries.get(first.slug),
        entries.get(second.slug),
        pairs_of(board).get((first.slug, second.slug)),
        len(board.report.get("pairs", [])),
        {family.slug: bins[family.slug] for family in (first, second) if bins.get(family.slug)},
    )


def _entries(board: Leaderboard | None) -> dict[str, Entry]:
    return {entry["family"]: entry for entry in board.entries} if board else {}
