"""Two families beside each other: one function for the page and the API."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Family
from cohorts.forecasting import BLIND, PRICED
from scoring.models import Leaderboard
from scoring.reports import part, reliability
from scoring.roster import Roster
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.services.contrasts import Disagreement, Opposed, disagreements, opposed
from scoring.services.forecast_boards import FORECAST
from scoring.services.head_to_head import Meeting, ReturnTest, meetings

ARMS = (PRICED, BLIND)
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


def comparison(first: Family, second: Family, known: Roster) -> Comparison:
    """Both protocols, tests of the difference, and where the two disagreed the most."""
    parts = {
        "pairs": part("pairs"),
        "returns": part("returns"),
        "first_bins": reliability(first.slug),
        "second_bins": reliability(second.slug),
    }
    whole = Leaderboard.objects.filter(methodology=ALL_METHODOLOGIES, category="").defer("report").annotate(**parts)
    boards = {(board.protocol, board.arm): board for board in whole}
    board: Any = boards.get((TRADING, ""))
    met, test = meetings(first, second, (board and board.returns) or {}, known)
    rows, against = opposed(first, second)
    bets = _entries(board)
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
        disagreements(first, second, PRICED),
    )


def pairs_of(board: Leaderboard | None) -> dict[tuple[str, str], Pair]:
    """The paired tests on record by the two slugs, either way round; a difference is first less second."""
    return _both_ways(board.report.get("pairs", []) if board else [])


def _both_ways(pairs: Iterable[Pair]) -> dict[tuple[str, str], Pair]:
    found: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        turned = None if pair["difference"] is None else -pair["difference"]
        found[pair["first"], pair["second"]] = pair
        found[pair["second"], pair["first"]] = {**pair, "difference": turned}
    return found


def _words(board: Any, first: Family, second: Family) -> Words:
    """Of a board, with its `pairs` and the bins of both beside it."""
    entries, pairs = _entries(board), board.pairs or []
    bins = {first.slug: board.first_bins, second.slug: board.second_bins}
    return Words(
        board.arm,
        entries.get(first.slug),
        entries.get(second.slug),
        _both_ways(pairs).get((first.slug, second.slug)),
        len(pairs),
        {slug: known for slug, known in bins.items() if known},
    )


def _entries(board: Leaderboard | None) -> dict[str, Entry]:
    return {entry["family"]: entry for entry in board.entries} if board else {}
