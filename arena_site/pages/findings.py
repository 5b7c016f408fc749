"""The findings in sentences that can be quoted as they stand."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from arena_site.pages.filters import count, fraction, number, p_value, score, signed_percent
from arena_site.pages.headlines import unfinished_words
from scoring.selectors.findings import Finding


class Statement(NamedTuple):
    """A finding as a page shows it: a heading, a sentence, how it was computed, and the page (URL name) with more."""

    topic: str
    heading: str
    sentence: str
    method: str
    page: str


def statement(finding: Finding) -> Statement:
    """The finding in words; where the data does not support it, the sentence says so and what is missing."""
    heading, page, method = HEADINGS[finding.topic]
    return Statement(finding.topic, heading, SENTENCES[finding.topic](finding), method, page)


def _against_market(f: Finding) -> str:
    ranking = "adjusted Brier score" if f.details["ranked_by"] == "adjusted_brier" else "Brier score"
    first = f"{f.first}, the model with the lowest {ranking},"
    return _difference(f, first, "the market’s prices", f.details["condition"])


def _ensemble(f: Finding) -> str:
    first, second = "The mean forecast of the models", "the market’s prices"
    return _difference(f, first, second, f.details["condition"], is_better="is", is_not="is not")


def _pair(f: Finding) -> str:
    return _difference(f, f.first, f.second, f.details["condition"])


def _difference(
    f: Finding,
    first: str,
    second: str,
    condition: str,
    *,
    is_better: str = "forecasts",
    is_not: str = "does not forecast",
) -> str:
    """A sentence on the better forecaster and its lead in Brier score."""
    questions, size = f"on {count(f.number)} resolved questions{_p(f)}", score(abs(f.estimate))
    if f.supported:
        better, less = ("better", "lower") if f.estimate > 0 else ("worse", "higher")
        basis = f"{_interval(f, score)} {questions}"
        return f"{first} {is_better} {better} than {second} {condition}: its Brier score is {size} {less} ({basis})."
    basis = f"{_interval(f, score)} {questions}"
    return (
        f"{first} {is_not} significantly better or worse than {second} {condition}: the difference in Brier score is"
        f" {size} ({basis}){_needed(f)}."
    )


def _prices(f: Finding) -> str:
    basis = f"{_interval(f, score)} on {count(f.number)} resolved questions"
    if f.supported:
        effect = "better" if f.estimate > 0 else "worse"
        less = "lower" if f.estimate > 0 else "higher"
        return (
            f"Models forecast {effect} when they see the market’s prices: their mean Brier score is"
            f" {score(abs(f.estimate))} {less} than without prices ({basis})."
        )
    return (
        "Seeing the market’s prices makes no significant difference to the models’ forecasts: their mean Brier score"
        f" differs by {score(abs(f.estimate))} ({basis}){_needed(f)}."
    )


def _stakes(f: Finding) -> str:
    basis = f"{_interval(f, _points)} on {count(f.number)} bets"
    if not f.supported:
        return (
            "No model’s stakes differ significantly from Kelly’s rule at the prices it paid and its own forecasts"
            f" {f.details['condition']}: the largest mean difference is that of {f.first}, {_points(abs(f.estimate))}"
            f" percentage points of cash ({basis})."
        )
    less = "less" if f.estimate < 0 else "more"
    return (
        f"{f.details['alike']} of {f.details['models']} models stake significantly {less} than Kelly’s rule would at"
        f" the prices they paid and their own forecasts {f.details['condition']}, most of all {f.first}: a bet takes"
        f" {fraction(f.details['stake'])} of its cash on average, Kelly’s rule {fraction(f.details['kelly'])}"
        f" (difference {_points(abs(f.estimate))} percentage points, {basis})."
    )


def _profit(f: Finding) -> str:
    ends = f"{signed_percent(f.low)} to {signed_percent(f.high)}"
    basis = f"95 % interval, corrected for all models, {ends} over {_plural(f.number, 'cohort')}"
    if ages := unfinished_words(f.details["ages"]):
        basis += f", {ages}"
    if f.supported:
        verb = "earns" if f.estimate > 0 else "loses"
        mean = signed_percent(f.estimate)
        trader = f"{f.first}, the model with the highest mean return,"
        return f"{trader} {verb} money on paper: its mean return is {mean} ({basis})."
    return (
        f"No model is shown to earn money: the mean return of {f.first}, the highest, is"
        f" {signed_percent(f.estimate)}, and its interval includes 0 ({basis}); only more cohorts can tell."
    )


def _calibration(f: Finding) -> str:
    bin_row = f.details
    span = f"{fraction(bin_row['from'], 0)} to {fraction(bin_row['to'], 0)} {bin_row['condition']}"
    basis = (
        f"95 % interval {fraction(bin_row['low'])} to {fraction(bin_row['high'])}, {count(f.number)} probabilities,"
        f" mean forecast {fraction(bin_row['forecast'])}"
    )
    happens = f"Of what {f.first} forecasts at {span}, {fraction(bin_row['outcome'])} happens ({basis})"
    if not f.supported:
        return f"{happens}: this does not differ significantly from its forecasts."
    often = "more" if f.estimate > 0 else "less"
    return f"{happens}: {often} often than it forecasts there, by an interval that is too short for related events."


def _interval(f: Finding, write: Callable[[float], str]) -> str:
    """The interval of the absolute difference, in the order of its bounds."""
    low, high = (f.low, f.high) if f.estimate >= 0 else (-f.high, -f.low)
    return f"95 % interval {write(low)} to {write(high)}"


def _p(f: Finding) -> str:
    if f.p is None:
        return ""
    return f", corrected p {p_value(f.p)}"


def _needed(f: Finding) -> str:
    """How much more data a small difference needs, if that is known."""
    if f.questions_more is None:
        return ""
    if not f.questions_more:
        return ". With this many questions we would probably have noticed a gap of 0.01; we did not"
    more = f"about {count(f.questions_more)} more resolved questions are needed"
    return f"; {more} to find a true difference of 0.01 with a probability of 80 %"


def _points(value: float) -> str:
    return number(100 * value, 1)


def _plural(value: int, noun: str) -> str:
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


PAIRED = (
    "Paired test on the questions that both answered, clustered by event. The interval and p are corrected for the"
    " number of pairs of models."
)
ALPHA = "Difference of Brier scores on the same questions; the interval resamples events."
HEADINGS: Mapping[str, tuple[str, str, str]] = {
    "market": (
        "The best model and the market", "leaderboard",
        "Paired test on the same questions, clustered by event. The interval and p are corrected for the number of"
        " models.",
    ),
    "worst": ("The best and the worst model", "forecasts", PAIRED),
    "prices": (
        "Forecasts with and without prices", "forecasts",
        "The same model, question and day under both prompt conditions; the mean over models, events resampled.",
    ),
    "ensemble": ("The mean of the models and the market", "forecasts", ALPHA),
    "stakes": (
        "Bets and forecasts of the same model", "calibration",
        "Stake minus Kelly’s stake at the probability that the model stated for the side and the price that it paid, as"
        " shares of cash. Kelly stakes nothing without an edge and at most the largest legal bet; events resampled."
        " Intervals are corrected for the number of models.",
    ),
    "profit": (
        "The highest mean return", "trading",
        "Mean over cohorts; interval over calendar weeks, since cohorts share weeks and markets, corrected for the"
        " number of models. With fewer than about"
        " twelve cohorts one rare shared win can still fall outside.",
    ),
    "calibration": (
        "Calibration of the best model", "calibration",
        "Its largest group of forecasts above 50 %. The interval treats forecasts as independent, so it is too short.",
    ),
    "runner-up": ("The best model and the next", "forecasts", PAIRED),
}  # fmt: skip
"""By topic: the heading, the page (URL name) that shows more, and the method."""
SENTENCES: Mapping[str, Callable[[Finding], str]] = {
    "market": _against_market,
    "worst": _pair,
    "prices": _prices,
    "ensemble": _ensemble,
    "stakes": _stakes,
    "profit": _profit,
    "calibration": _calibration,
    "runner-up": _pair,
}
