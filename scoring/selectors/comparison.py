"""Comparison of two families, for the page and the API; a difference is the first less the second."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from agents.models import Family
from arena_verifier.intervals import return_pairs
from cohorts.models import Cohort
from foundation.bulk import rows_by
from scoring.constants import FORECAST, TRADING
from scoring.leaderboard_keys import Entry
from scoring.selectors.competition import CompetitionIndex
from scoring.selectors.disagreements import Disagreement, PositionDisagreements, disagreements, position_disagreements
from scoring.selectors.leaderboard_entries import StoredLeaderboard, overall_leaderboards, reliability_path

Pair = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReturnTest:
    """The paired test of two families' returns over their common cohorts by week, in percentage points."""

    cohorts: int
    weeks: int
    difference: float
    se: float | None
    freedom: float | None
    p: float | None
    p_holm: float | None
    margin: float | None
    cohorts_more: float | None
    pairs: int


class SharedCohort(NamedTuple):
    """A cohort of both families, with their returns in percent."""

    cohort: Cohort
    first_return: float
    second_return: float


@dataclass(frozen=True, slots=True)
class TradingComparison:
    """The leaderboard entries of two families, and their common cohorts, newest first."""

    first: Entry | None
    second: Entry | None
    test: ReturnTest | None
    cohorts: Sequence[SharedCohort]

    @property
    def first_ahead(self) -> int:
        return sum(shared.first_return > shared.second_return for shared in self.cohorts)

    @property
    def second_ahead(self) -> int:
        return sum(shared.second_return > shared.first_return for shared in self.cohorts)


@dataclass(frozen=True, slots=True)
class ForecastComparison:
    """The leaderboard entries of two families in one arm, and the paired test of their Brier scores."""

    arm: str
    first: Entry | None
    second: Entry | None
    test: Pair | None
    bins: Mapping[str, Sequence[Mapping[str, Any]]]
    """The bins of each family's reliability diagram, by slug."""
    computed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two families in both protocols, and their largest disagreements."""

    first: Family
    second: Family
    trades: TradingComparison
    forecasts: Sequence[ForecastComparison]
    position_disagreements: PositionDisagreements
    disagreements: Sequence[Disagreement]


def comparison(first: Family, second: Family, index: CompetitionIndex) -> Comparison:
    """The comparison by the stored leaderboards."""
    arms = index.conditions.names()
    paths: list[Sequence[str]] = [("returns",), ("pairs",)]
    paths += [reliability_path(first.slug), reliability_path(second.slug)]
    if first.external or second.external:
        paths.append(("weeks",))
    leaderboards = overall_leaderboards(*paths)
    trading = leaderboards.get((TRADING, ""), StoredLeaderboard(None, {}, [None] * len(paths)))
    returns = trading.parts[0] or {}
    cohorts = shared_cohorts(returns.get(first.slug, {}), returns.get(second.slug, {}), index)
    test = return_test(first, second, trading, index)
    entries = trading.entries
    forecasts = []
    for arm in arms:
        if (FORECAST, arm) in leaderboards:
            forecasts.append(_in_arm(arm, leaderboards[FORECAST, arm], first, second))
    return Comparison(
        first,
        second,
        TradingComparison(entries.get(first.slug), entries.get(second.slug), test, cohorts),
        forecasts,
        position_disagreements(first, second),
        disagreements(first, second, index.conditions.board()),
    )


def both_directions(pairs: Iterable[Pair]) -> dict[tuple[str, str], Pair]:
    """Paired tests by the two slugs in either order."""
    tests: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        reverse = None if pair["difference"] is None else -pair["difference"]
        tests[pair["first"], pair["second"]] = pair
        tests[pair["second"], pair["first"]] = {**pair, "difference": reverse}
    return tests


def shared_cohorts(
    first: Mapping[str, float], second: Mapping[str, float], index: CompetitionIndex
) -> list[SharedCohort]:
    """The cohorts that both played, newest first, by their returns by cohort number (text, as in JSON)."""
    by_number = rows_by("number", index.cohorts.values())
    common = sorted(map(int, first.keys() & second.keys()), reverse=True)
    return [SharedCohort(by_number[number], first[str(number)], second[str(number)]) for number in common]


def return_test(
    first: Family, second: Family, trading: StoredLeaderboard, index: CompetitionIndex
) -> ReturnTest | None:
    """The test of the returns' difference, corrected for all pairs of families; None without a common cohort.

    That of two ranked families is the leaderboard's. An external agent has none there: its pairs are tested beside
    those of the ranked families, other external agents than these two left out.
    """
    from scoring.selectors.return_pairs import pair_values

    pairs = trading.parts[1] or []
    if first.external or second.external:
        excluded = {family.slug for family in index.families.values() if family.external} - {first.slug, second.slug}
        weeks = trading.parts[-1] or {}
        pairs = pair_values(return_pairs({slug: weeks[slug] for slug in weeks if slug not in excluded}))
    test = both_directions(pairs).get((first.slug, second.slug))
    if test is None or not test["cohorts"]:
        return None
    fields: dict[str, Any] = {name: test.get(name) for name in ReturnTest.__slots__ if name != "pairs"}
    return ReturnTest(**fields, pairs=len(pairs))


def _in_arm(arm: str, leaderboard: StoredLeaderboard, first: Family, second: Family) -> ForecastComparison:
    _, pairs, first_bins, second_bins, *_ = leaderboard.parts
    bins = {}
    for family, family_bins in ((first, first_bins), (second, second_bins)):
        if family_bins:
            bins[family.slug] = family_bins
    test = both_directions(pairs or ()).get((first.slug, second.slug))
    return ForecastComparison(
        arm,
        leaderboard.entries.get(first.slug),
        leaderboard.entries.get(second.slug),
        test and {"margin": None, **test, "pairs": len(pairs)},
        bins,
        leaderboard.computed_at,
    )
