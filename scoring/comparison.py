"""Comparison of two families, for the page and the API; a difference is the first less the second."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, NamedTuple

from agents.models import Family
from cohorts.models import Cohort
from markets.prompt_conditions import ARMS, PRICED
from scoring.competition import CompetitionIndex
from scoring.constants import ALL_METHODOLOGIES, DETECTABLE_DIFFERENCE, FORECAST, TRADING
from scoring.disagreements import Disagreement, PositionDisagreements, disagreements, position_disagreements
from scoring.leaderboard_entries import Entry, StoredLeaderboard, overall_leaderboards, reliability_path

Pair = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReturnTest:
    """The paired test of two families' returns over their common cohorts, in percentage points."""

    cohorts: int
    difference: float
    se: float | None
    p: float | None
    p_holm: float | None
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


def comparison(first: Family, second: Family, index: CompetitionIndex, *, at: datetime | None = None) -> Comparison:
    """The comparison by the stored leaderboards, or by those of a past instant."""
    paths = (("returns",), ("pairs",), reliability_path(first.slug), reliability_path(second.slug))
    leaderboards = overall_leaderboards(*paths) if at is None else _past_leaderboards(*paths, at=at)
    trading = leaderboards.get((TRADING, ""))
    entries = trading.entries if trading else {}
    cohorts, test = shared_cohorts(first, second, (trading and trading.parts[0]) or {}, index)
    return Comparison(
        first,
        second,
        TradingComparison(entries.get(first.slug), entries.get(second.slug), test, cohorts),
        [_in_arm(arm, leaderboards[FORECAST, arm], first, second) for arm in ARMS if (FORECAST, arm) in leaderboards],
        position_disagreements(first, second, at=at),
        disagreements(first, second, PRICED, at=at),
    )


def _past_leaderboards(*paths: Sequence[str], at: datetime) -> dict[tuple[str, str], StoredLeaderboard]:
    """What `overall_leaderboards` gives, as of a past instant."""
    from scoring.services.past_leaderboards import past_forecast_leaderboard, past_trading_leaderboard

    rows = [past_trading_leaderboard(ALL_METHODOLOGIES, at=at)]
    rows += [past_forecast_leaderboard(arm, ALL_METHODOLOGIES, "", at=at) for arm in ARMS]
    past = {}
    for row in rows:
        report = json.loads(json.dumps(row.report))  # with the text keys of a stored one
        entries = {entry["family"]: entry for entry in row.entries}
        parts = [reduce(lambda part, key: (part or {}).get(key), path, report) for path in paths]
        past[row.protocol, row.arm] = StoredLeaderboard(at, entries, parts)
    return past


def both_directions(pairs: Iterable[Pair]) -> dict[tuple[str, str], Pair]:
    """Paired tests by the two slugs in either order."""
    tests: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        reverse = None if pair["difference"] is None else -pair["difference"]
        tests[pair["first"], pair["second"]] = pair
        tests[pair["second"], pair["first"]] = {**pair, "difference": reverse}
    return tests


def shared_cohorts(
    first: Family, second: Family, returns: Mapping[str, Mapping[str, float]], index: CompetitionIndex
) -> tuple[list[SharedCohort], ReturnTest | None]:
    """The common cohorts, newest first, and the test of the returns' difference among all pairs of families.

    `returns` are those of the trading leaderboard, by family slug and cohort number (text, as in JSON). Other external
    agents than these two are left out of the pairs.
    """
    excluded = {family.slug for family in index.families.values() if family.external} - {first.slug, second.slug}
    families = [slug for slug in returns if slug not in excluded]
    numbers = sorted({int(number) for slug in families for number in returns[slug]})
    mine, theirs = returns.get(first.slug, {}), returns.get(second.slug, {})
    common = sorted((int(number) for number in mine.keys() & theirs.keys()), reverse=True)
    if not common:
        return [], None
    by_number = {cohort.number: cohort for cohort in index.cohorts.values()}
    cohorts = [SharedCohort(by_number[number], mine[str(number)], theirs[str(number)]) for number in common]
    table = [[returns[slug].get(str(number), math.nan) for number in numbers] for slug in families]
    return cohorts, _return_test(table, families.index(first.slug), families.index(second.slug))


def _return_test(table: list[list[float]], first: int, second: int) -> ReturnTest:
    """The paired test of scores with cohorts in place of questions, corrected for all pairs of families."""
    import numpy as np
    from forecast_rank.metrics.paired_tests import paired_tests
    from forecast_rank.metrics.panel import from_arrays

    returns = np.array(table)
    panel = from_arrays(np.where(np.isnan(returns), np.nan, 0.5)[:, :, None], np.zeros((returns.shape[1], 1)))
    tests = paired_tests(panel, returns[panel.forecaster, panel.question], difference=DETECTABLE_DIFFERENCE)
    low, high = sorted((first, second))
    row = int(np.flatnonzero((tests.first == low) & (tests.second == high))[0])
    sign = 1 if first == low else -1
    return ReturnTest(
        cohorts=int(tests.n[row]),
        difference=sign * float(tests.difference[row]),
        se=_finite(tests.se[row]),
        p=_finite(tests.p[row]),
        p_holm=_finite(tests.p_holm[row]),
        cohorts_more=_finite(tests.questions_more[row]),
        pairs=len(tests.n),
    )


def _finite(value: Any) -> float | None:
    return float(value) if math.isfinite(value) else None


def _in_arm(arm: str, leaderboard: StoredLeaderboard, first: Family, second: Family) -> ForecastComparison:
    _, pairs, *bins = leaderboard.parts
    test = both_directions(pairs or ()).get((first.slug, second.slug))
    return ForecastComparison(
        arm,
        leaderboard.entries.get(first.slug),
        leaderboard.entries.get(second.slug),
        test and {**test, "pairs": len(pairs)},
        {family.slug: found for family, found in zip((first, second), bins, strict=True) if found},
        leaderboard.computed_at,
    )
