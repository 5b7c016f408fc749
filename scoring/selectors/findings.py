"""Comparisons that the leaderboards and scores allow now, each with its interval; the most telling ones first."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models.fields.json import KeyTransform

from foundation.bulk import subset
from scoring.constants import ALL_METHODOLOGIES, ENSEMBLE, SIGNIFICANCE, TRADING
from scoring.leaderboard_keys import Entry, cached_by_leaderboards, model_entries, ranking_score
from scoring.models import Leaderboard
from scoring.selectors.competition import competition_index, last_competition_index, unfinished_ages
from scoring.selectors.forecast_boards import ForecastBoard, forecast_board

PARTS = ("pairs", "data", "market", "forecasts_and_trades", "curves__reliability", "conditions")
"""The parts of the forecast leaderboard's report that findings are made from."""
NORMAL_QUANTILE = 1.96
"""Standard errors on each side of an estimate in a 95 % interval."""
LIKELY = 0.5
SMALLEST_BIN = 10
"""Probabilities in a bin of the reliability diagram below which nothing is said about it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A comparison: an estimate, above 0 where `first` is ahead or the effect is there, and its 95 % interval.

    number : resolved questions, bets or cohorts that it rests on
    p : of the paired test, corrected for the number of pairs; None where the interval is the test
    needed : further resolved questions to find a true difference of 0.01 in the Brier score with 80 % power
    details : further figures of the sentence
    at : the instant that the figures are as of
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

    @property
    def supported(self) -> bool:
        """Whether the data tells the estimate from 0."""
        if self.p is not None:
            return self.p < SIGNIFICANCE
        return _excludes_zero(self.low, self.high)


def _excludes_zero(low: float, high: float) -> bool:
    return low > 0 or high < 0


class Findings(NamedTuple):
    """The comparisons as of the instant of the forecast leaderboard, and the events that had resolved by then."""

    comparisons: Sequence[Finding]
    events: int
    at: datetime | None


def findings(*, at: datetime | None = None) -> Findings:
    """The comparisons that can be made now, cached until a leaderboard changes, or those as of an instant."""
    board = forecast_board(at=at, parts=PARTS)
    if at is not None and board.pk is None:
        board = _past_board(at)

    def compute() -> list[dict[str, Any]]:
        return [asdict(finding) | {"at": finding.at or board.computed_at} for finding in _comparisons(board, at)]

    stored = compute() if at is not None else cached_by_leaderboards("findings", compute)
    comparisons = [Finding(**values) for values in stored]
    return Findings(comparisons, board.report.get("data", {}).get("events", 0), board.computed_at)


def _past_board(at: datetime) -> ForecastBoard:
    """The leaderboard as of an instant, its report with the parts that the comparisons are made from."""
    from scoring.services.past_leaderboards import past_condition_report, past_forecast_leaderboard

    arm = last_competition_index().conditions.board(at=at)
    past = past_forecast_leaderboard(arm, ALL_METHODOLOGIES, "", at=at)
    reliability = past.report["curves"].get("reliability", {})
    parts = {"curves__reliability": reliability, "conditions": past_condition_report(at)}
    return ForecastBoard(past.entries, past.report | parts, at)


def _comparisons(board: ForecastBoard, at: datetime | None) -> Iterator[Finding]:
    condition = _condition(at)
    models = [entry for entry in model_entries(board.entries) if ranking_score(entry) is not None]
    if models:
        best, *runners_up = sorted(models, key=itemgetter("rank"))
        yield from _best_against_market(best, board.report.get("market", {}), condition)
        if runners_up:
            pairs = board.report.get("pairs", [])
            yield from _paired("worst", best, runners_up[-1], pairs, condition)
    yield from _prices(board.report.get("conditions", {}).get("prices"))
    for entry in board.entries:
        if entry["forecaster"] == ENSEMBLE:
            yield from _ensemble_against_market(entry, condition)
    yield from _stakes(board, condition)
    yield from _profit(at)
    if models:
        yield from _calibration(best, board.report.get("curves__reliability", {}).get("forecasters", {}), condition)
        if runners_up[1:]:
            yield from _paired("runner-up", best, runners_up[0], pairs, condition)


def _best_against_market(
    best: Entry, tests: Mapping[str, Mapping[str, Any]], condition: Mapping[str, str]
) -> Iterator[Finding]:
    """The test of the best model and the market's prices, corrected for the number of models."""
    test = tests.get(best["forecaster"])
    if test is None or test["p_holm"] is None:
        return
    lead, margin = test["difference"], test["margin"]
    questions = _needed(best["n"], margin / NORMAL_QUANTILE)
    details = {"ranked_by": best["ranked_by"], **condition}
    yield Finding(
        "market", best["display_name"], "", lead, lead - margin, lead + margin, best["n"], test["p_holm"], questions,
        details,
    )  # fmt: skip


def _ensemble_against_market(entry: Entry, condition: Mapping[str, str]) -> Iterator[Finding]:
    if entry["alpha_ci"]:
        low, high = entry["alpha_ci"]
        questions = _needed(entry["n"], (high - low) / 2 / NORMAL_QUANTILE)
        yield Finding(
            "ensemble", entry["display_name"], "", entry["alpha"], low, high, entry["n"], None, questions, condition
        )


def _paired(
    topic: str, best: Entry, opponent: Entry, pairs: Sequence[Mapping[str, Any]], condition: Mapping[str, str]
) -> Iterator[Finding]:
    """The paired test of the best model and another, its interval corrected as p is; a lower Brier score is ahead."""
    names = {best["forecaster"], opponent["forecaster"]}
    pair = next((pair for pair in pairs if {pair["first"], pair["second"]} == names), None)
    if pair is None or pair.get("margin") is None:
        return
    ahead = -pair["difference"] if pair["first"] == best["forecaster"] else pair["difference"]
    margin = pair["margin"]
    questions = None if pair["questions_more"] is None else int(pair["questions_more"])
    yield Finding(
        topic, best["display_name"], opponent["display_name"], ahead, ahead - margin, ahead + margin,
        min(best["n"], opponent["n"]), pair["p_holm"], questions, condition,
    )  # fmt: skip


def _condition(at: datetime | None) -> dict[str, str]:
    """The prompt condition of the board, for a sentence."""
    conditions = last_competition_index().conditions
    return {"condition": conditions.phrase(conditions.board(at=at))}


def _prices(effect: Mapping[str, Any] | None) -> Iterator[Finding]:
    """The finding on the market's prices in the prompt, from the figures of `price_effect`."""
    if effect:
        low, high = effect["interval"]
        number = effect["questions"]
        questions_more = _needed(number, (high - low) / 2 / NORMAL_QUANTILE)
        yield Finding("prices", "", "", effect["gain"], low, high, number, None, questions_more, {})


def _stakes(board: ForecastBoard, condition: Mapping[str, str]) -> Iterator[Finding]:
    """The model whose stakes differ most from Kelly's at its own forecasts, and how many differ in that direction."""
    names = {entry["family"]: entry["display_name"] for entry in board.entries}
    models = [row for row in board.report.get("forecasts_and_trades", []) if row.get("over_kelly_ci")]
    if not models:
        return
    row = max(models, key=lambda row: (_excludes_zero(*row["over_kelly_ci"]), abs(row["over_kelly"])))
    sign = math.copysign(1, row["over_kelly"])
    alike = 0
    for model in models:
        low, high = model["over_kelly_ci"]
        alike += low > 0 if sign > 0 else high < 0
    low, high = row["over_kelly_ci"]
    details = {"alike": alike, "models": len(models), "stake": row["stake"], "kelly": row["kelly_stake"], **condition}
    name = names.get(row["family"], row["family"])
    yield Finding("stakes", name, "", row["over_kelly"], low, high, row["bets"], None, None, details)


def _profit(at: datetime | None) -> Iterator[Finding]:
    """The highest mean return, in percent, its interval corrected for the number of models.

    `ages` are those of its cohorts that had not ended, in weeks.
    """
    contents = None
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=ALL_METHODOLOGIES, category="")
    if at is None:
        entries, at = stored.values_list("entries", "computed_at").first() or ([], None)
    else:
        from scoring.services.trading_leaderboards import trading_leaderboard

        contents = trading_leaderboard(ALL_METHODOLOGIES, at=at)
        entries = contents.entries
    ranked = [entry for entry in entries if entry["rank"] is not None and not entry["external"]]
    best = next((entry for entry in ranked if entry["rank"] == 1 and entry["return_ci"]), None)
    if best is None or at is None:
        return
    from scoring.selectors.return_tests import return_error

    if contents is None:  # the weeks of one family: those of all are most of the report
        weeks = stored.values_list(KeyTransform(best["family"], KeyTransform("weeks", "report"))).get()[0]
    else:
        weeks = contents.report["weeks"][best["family"]]
    interval = return_error(weeks, of=len(ranked)).interval
    if interval:
        mean, cohorts = best["return_percent"], best["cohorts"]
        numbers = set(map(int, weeks))
        best_cohorts = [cohort for cohort in competition_index().cohorts.values() if cohort.number in numbers]
        details = {"ages": unfinished_ages(best_cohorts, at)}
        yield Finding("profit", best["display_name"], "", mean, *interval, cohorts, None, None, details, at)


def _calibration(
    best: Entry, bins_by_name: Mapping[str, Sequence[Mapping[str, Any]]], condition: Mapping[str, str]
) -> Iterator[Finding]:
    """The calibration of the best model's likely events.

    It is the share that happened less the mean forecast, in the bin of likely events that holds most forecasts.
    """
    bins = bins_by_name.get(best["forecaster"], [])
    likely = [interval for interval in bins if interval["from"] >= LIKELY and interval["pairs"] >= SMALLEST_BIN]
    if likely:
        largest = max(likely, key=lambda interval: (interval["pairs"], interval["from"]))
        forecast = largest["forecast"]
        details = subset(largest, ("from", "to", "forecast", "outcome", "low", "high"))
        yield Finding(
            "calibration", best["display_name"], "", largest["outcome"] - forecast, largest["low"] - forecast,
            largest["high"] - forecast, largest["pairs"], None, None, {**details, **condition},
        )  # fmt: skip


def _needed(number: int, standard_error: float) -> int | None:
    from forecast_rank.metrics.paired_tests import questions_needed

    questions = float(questions_needed(number, standard_error))
    return None if math.isnan(questions) else max(0, int(questions) - number)
