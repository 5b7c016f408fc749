"""Comparisons that the leaderboards and scores allow now, their claims corrected together as one family."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import filterfalse
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

from django.db.models.fields.json import KeyTransform

from scoring.constants import ALL_METHODOLOGIES, ENSEMBLE, SIGNIFICANCE, TOTAL_LOSS, TRADING
from scoring.leaderboard_keys import Entry, cached_by_leaderboards, model_entries, ranking_score
from scoring.models import Leaderboard
from scoring.selectors.claims import (
    COHORTS,
    EVENTS,
    Shortage,
    questions_more,
    questions_per_week,
    shortage,
    weeks_at_pace,
)
from scoring.selectors.competition import competition_index, last_competition_index, unfinished_ages
from scoring.selectors.forecast_boards import forecast_board

PARTS = ("pairs", "data", "market", "ensemble", "forecasts_and_trades", "conditions")
"""The parts of the forecast leaderboard's report that findings are made from."""
PROFIT = "profit"
"""The topic whose claim rests on cohorts; the others rest on events."""
WHOLE = (-1.0, 1.0)
"""The bounds of a difference of Brier scores, or of shares of cash."""
RETURNS = (TOTAL_LOSS, math.inf)


@dataclass(frozen=True, slots=True)
class Finding:
    """A comparison: an estimate, above 0 where `first` is ahead or the effect is there, and its 95 % interval.

    number : resolved questions, bets or cohorts that it rests on
    p : of the test, corrected for its own comparisons and for the other claims of the page; None of too little data
    questions_more : further resolved questions to find a true difference of 0.01 with 80 % power at p's level
    details : further figures of the sentence
    at : the instant that the figures are as of
    basis, freedom : events, or cohorts, that there are, and the degrees of freedom of the test
    weeks_more : the weeks that `questions_more` take at the pace of the last four; None without a pace
    """

    topic: str
    first: str
    second: str
    estimate: float
    low: float
    high: float
    number: int
    p: float | None
    questions_more: int | None
    details: Mapping[str, Any]
    at: datetime | None = None
    basis: int = 0
    freedom: float | None = None
    weeks_more: int | None = None

    @property
    def shortage(self) -> Shortage | None:
        """What is too little for a claim."""
        return shortage(COHORTS if self.topic == PROFIT else EVENTS, self.basis, self.freedom)

    @property
    def supported(self) -> bool:
        """Whether the data tells the estimate from 0."""
        return self.p is not None and self.p < SIGNIFICANCE


class UncorrectedFinding(NamedTuple):
    """A test whose result a page states.

    estimate, se, freedom, p : of the one test, by events, or by weeks
    p_family : corrected for the comparisons of which it is one
    number, questions : what it rests on, and questions, if more of them would tell; else 0
    basis : events, or cohorts
    bounds : the least and the largest that the estimate can be
    rivals : the corrected p of the others of its family, by name, if their results are stated with it
    """

    topic: str
    first: str
    second: str
    estimate: float
    se: float
    freedom: float
    p: float
    p_family: float
    number: int
    questions: float
    basis: int
    details: Mapping[str, Any]
    bounds: tuple[float, float] = (-math.inf, math.inf)
    at: datetime | None = None
    rivals: Mapping[str, tuple[float, float]] = {}


class Findings(NamedTuple):
    """The comparisons as of the instant of the forecast leaderboard, and the events that had resolved by then."""

    comparisons: Sequence[Finding]
    events: int
    at: datetime | None


def findings() -> Findings:
    """The comparisons that can be made now, cached until a leaderboard changes."""
    board = forecast_board(parts=PARTS)

    def compute() -> list[dict[str, Any]]:
        claims = [*board_claims(board.entries, board.report, _condition()), *_profit()]
        corrected = corrected_claims(claims, questions_per_week(board.computed_at))
        return [asdict(finding) | {"at": finding.at or board.computed_at} for finding in corrected]

    comparisons = [Finding(**values) for values in cached_by_leaderboards("findings", compute)]
    return Findings(comparisons, board.report.get("data", {}).get("events", 0), board.computed_at)


def corrected_claims(claims: Sequence[UncorrectedFinding], questions_per_week: float | None = None) -> list[Finding]:
    """The claims of one page with p and intervals corrected for all of them, by Holm; what bears none is not tested.

    An interval leaves out 0 exactly where the corrected p is below SIGNIFICANCE.
    """
    from forecast_rank.metrics.paired_tests import holm

    tested = list(filter(_bears_claim, claims))
    corrected = holm(list(map(attrgetter("p_family"), tested))) if tested else ()
    found = {}
    for claim, p in zip(tested, corrected, strict=True):
        found[claim.topic] = _found(claim, float(p), len(tested), questions_per_week)
    for claim in filterfalse(_bears_claim, claims):
        found[claim.topic] = Finding(
            claim.topic, claim.first, claim.second, claim.estimate, claim.estimate, claim.estimate, claim.number, None,
            None, claim.details, claim.at, claim.basis, claim.freedom,
        )  # fmt: skip
    return [found[claim.topic] for claim in claims]


def _bears_claim(claim: UncorrectedFinding) -> bool:
    unit = COHORTS if claim.topic == PROFIT else EVENTS
    return shortage(unit, claim.basis, claim.freedom) is None and math.isfinite(claim.p) and claim.se > 0


def _found(claim: UncorrectedFinding, p: float, claims: int, questions_per_week: float | None) -> Finding:
    """A claim with its interval at the level that the correction leaves to it."""
    from scipy.stats import t

    comparisons = max(1, round(claim.p_family / claim.p)) if 0 < claim.p_family < 1 else 1
    factor = p / claim.p if 0 < p < 1 else comparisons * claims
    margin = float(t.ppf(1 - SIGNIFICANCE / 2 / max(factor, 1.0), claim.freedom)) * claim.se
    more = questions_more(claim.questions, claim.se, claims=max(factor, 1.0)) if claim.questions else None
    weeks = weeks_at_pace(more, questions_per_week)
    page_factor = p / claim.p_family if 0 < p < 1 else claims
    details = dict(claim.details)
    if claim.rivals:
        details |= _named_rivals(claim.rivals, page_factor)
    low, high = max(claim.estimate - margin, claim.bounds[0]), min(claim.estimate + margin, claim.bounds[1])
    return Finding(
        claim.topic, claim.first, claim.second, claim.estimate, low, high, claim.number, p, more, details, claim.at,
        claim.basis, claim.freedom, weeks,
    )  # fmt: skip


def _named_rivals(rivals: Mapping[str, tuple[float, float]], factor: float) -> dict[str, list[str]]:
    """Who is above 0 and who below, of a family whose p are corrected among themselves, at the level left to it."""
    above: list[str] = []
    below: list[str] = []
    for name, (estimate, p) in rivals.items():
        if p * max(factor, 1.0) < SIGNIFICANCE:
            (above if estimate > 0 else below).append(name)
    return {"above": above, "below": below}


def board_claims(
    entries: Sequence[Entry], report: Mapping[str, Any], condition: Mapping[str, str]
) -> Iterator[UncorrectedFinding]:
    """The claims that a forecast leaderboard and its report allow, the most telling ones first."""
    ranked = [entry for entry in model_entries(entries) if ranking_score(entry) is not None]
    ranked.sort(key=itemgetter("rank"))
    best, runners_up = (ranked[0] if ranked else None), ranked[1:]
    pairs = report.get("pairs", [])
    if best is not None:
        details = {"ranked_by": best["ranked_by"], **condition}
        yield from _against_prices("market", best, report.get("market", {}).get(best["forecaster"]), details)
        if runners_up:
            yield from _paired("worst", best, runners_up[-1], pairs, condition)
    effect = report.get("conditions", {}).get("prices")
    if effect and effect.get("p") is not None:
        yield _claim("prices", "", "", effect["gain"], effect, effect["questions"], {})
    for entry in entries:
        if entry["forecaster"] == ENSEMBLE:
            yield from _against_prices("ensemble", entry, report.get("ensemble"), condition)
    yield from _stakes(entries, report.get("forecasts_and_trades", []), condition)
    if best is not None and runners_up[1:]:
        yield from _paired("runner-up", best, runners_up[0], pairs, condition)


def _claim(
    topic: str, first: str, second: str, estimate: float, test: Mapping[str, Any], number: int, details: Mapping
) -> UncorrectedFinding:
    """A claim on a difference of Brier scores, of the figures of its test."""
    p_family = test.get("p_holm")
    return UncorrectedFinding(
        topic, first, second, estimate, test["se"], test["freedom"], test["p"],
        test["p"] if p_family is None else p_family, number, number, test["events"], details, WHOLE,
    )  # fmt: skip


def _against_prices(
    topic: str, entry: Entry, test: Mapping[str, Any] | None, details: Mapping[str, str]
) -> Iterator[UncorrectedFinding]:
    """The test of a forecaster and the market's prices on the same questions."""
    if test is not None and test.get("p") is not None:
        yield _claim(topic, entry["display_name"], "", test["difference"], test, test["questions"], details)


def _paired(
    topic: str, best: Entry, opponent: Entry, pairs: Sequence[Mapping[str, Any]], condition: Mapping[str, str]
) -> Iterator[UncorrectedFinding]:
    """The paired test of the best model and another; a lower Brier score is ahead."""
    names = {best["forecaster"], opponent["forecaster"]}
    pair = next((pair for pair in pairs if {pair["first"], pair["second"]} == names), None)
    if pair is None or pair.get("p") is None or pair.get("freedom") is None:
        return
    ahead = -pair["difference"] if pair["first"] == best["forecaster"] else pair["difference"]
    yield _claim(topic, best["display_name"], opponent["display_name"], ahead, pair, pair["n"], condition)


def _condition() -> dict[str, str]:
    """The prompt condition of the board, for a sentence."""
    conditions = last_competition_index().conditions
    return {"condition": conditions.phrase(conditions.board())}


def _stakes(
    entries: Sequence[Entry], rows: Sequence[Mapping[str, Any]], condition: Mapping[str, str]
) -> Iterator[UncorrectedFinding]:
    """The model whose stakes differ most from Kelly's at its own forecasts, by its test among all models."""
    from forecast_rank.metrics.paired_tests import holm

    names = {entry["family"]: entry["display_name"] for entry in entries}
    models = [row for row in rows if row.get("over_kelly_test")]
    if not models:
        return
    corrected = holm([row["over_kelly_test"]["p"] for row in models]).tolist()
    rivals = {}
    for row, p in zip(models, corrected, strict=True):
        rivals[names.get(row["family"], row["family"])] = (row["over_kelly"], p)
    place = min(range(len(models)), key=lambda place: (corrected[place], -abs(models[place]["over_kelly"])))
    row, test = models[place], models[place]["over_kelly_test"]
    details = {"models": len(models), "stake": row["stake"], "kelly": row["kelly_stake"], **condition}
    yield UncorrectedFinding(
        "stakes", names.get(row["family"], row["family"]), "", row["over_kelly"], test["se"], test["freedom"],
        test["p"], corrected[place], row["bets"], 0, row["events"], details, WHOLE, rivals=rivals,
    )  # fmt: skip


def _profit() -> Iterator[UncorrectedFinding]:
    """The mean returns of all models, by the one told best from 0; `ages` are the weeks of cohorts that had not ended.

    Its details name every model whose interval, corrected for all models and for the page, leaves out 0.
    """
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=ALL_METHODOLOGIES, category="")
    entries, tests, computed_at = stored.values_list(
        "entries", KeyTransform("earning", "report"), "computed_at"
    ).first() or ([], None, None)
    ranked = [entry for entry in entries if entry["rank"] is not None and not entry["external"]]
    claim = None if computed_at is None else earning_claim(ranked, tests or {}, {}, computed_at)
    if claim is None or computed_at is None:
        return
    cohorts = [cohort for cohort in competition_index().cohorts.values() if cohort.week_start < computed_at]
    yield claim._replace(details={"ages": unfinished_ages(cohorts, computed_at)})


def earning_claim(
    ranked: Sequence[Entry], tests: Mapping[str, Mapping[str, Any]], details: Mapping[str, Any], at: datetime
) -> UncorrectedFinding | None:
    """The claim on who earns money, from the tests of the mean returns of all ranked families by slug."""
    from forecast_rank.metrics.paired_tests import holm

    tested = [entry for entry in ranked if entry["family"] in tests and tests[entry["family"]]["p"] is not None]
    if not tested:
        return None
    corrected = holm([tests[entry["family"]]["p"] for entry in tested]).tolist()
    rivals = {}
    for entry, p in zip(tested, corrected, strict=True):
        rivals[entry["display_name"]] = (entry["return_percent"], p)
    place = min(range(len(tested)), key=lambda place: (corrected[place], -tested[place]["return_percent"]))
    entry, test = tested[place], tests[tested[place]["family"]]
    return UncorrectedFinding(
        PROFIT, entry["display_name"], "", entry["return_percent"], test["se"], test["freedom"], test["p"],
        corrected[place], entry["cohorts"], 0, entry["cohorts"], details, RETURNS, at=at, rivals=rivals,
    )  # fmt: skip
