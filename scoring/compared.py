"""Two families beside each other: one function for the page and the API."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Family
from cohorts.forecasting import BLIND, PRICED
from scoring.overall import Board, Entry, overall, reliability
from scoring.roster import Roster
from scoring.services.boards import TRADING
from scoring.services.contrasts import Disagreement, Opposed, disagreements, opposed
from scoring.services.forecast_boards import FORECAST
from scoring.services.head_to_head import Meeting, ReturnTest, meetings

ARMS = (PRICED, BLIND)
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
    boards = overall(("returns",), ("pairs",), reliability(first.slug), reliability(second.slug))
    board = boards.get((TRADING, ""))
    met, test = meetings(first, second, (board and board.parts[0]) or {}, known)
    rows, against = opposed(first, second)
    bets = board.entries if board else {}
    return Comparison(
        first,
        second,
        bets.get(first.slug),
        bets.get(second.slug),
        [_words(arm, boards[FORECAST, arm], first, second) for arm in ARMS if (FORECAST, arm) in boards],
        met,
        test,
        rows,
        against,
        disagreements(first, second, PRICED),
    )


def both_ways(pairs: Iterable[Pair]) -> dict[tuple[str, str], Pair]:
    """Paired tests by the two slugs, either way round; a difference is first less second."""
    found: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        turned = None if pair["difference"] is None else -pair["difference"]
        found[pair["first"], pair["second"]] = pair
        found[pair["second"], pair["first"]] = {**pair, "difference": turned}
    return found


def _words(arm: str, board: Board, first: Family, second: Family) -> Words:
    """Of an arm's board with the parts that `comparison` asks for."""
    _, pairs, *of_both = board.parts
    return Words(
        arm,
        board.entries.get(first.slug),
        board.entries.get(second.slug),
        both_ways(pairs or ()).get((first.slug, second.slug)),
        len(pairs or ()),
        {family.slug: bins for family, bins in zip((first, second), of_both, strict=True) if bins},
    )
