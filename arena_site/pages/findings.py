"""The findings in sentences that can be quoted as they stand."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from arena_site.pages.comparison_sentences import plural, too_few
from arena_site.pages.filters import count, fraction, number, p_value, score, signed_percent
from arena_site.pages.headlines import MINIMUM_EVENTS, unfinished_words
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
    write = _untested if finding.p is None else SENTENCES[finding.topic]
    return Statement(finding.topic, heading, write(finding), f"{method} {FAMILY}", page)


def nothing_yet(events: int) -> str:
    """Why no comparison is supported, by the number of resolved events."""
    if events < MINIMUM_EVENTS:
        return f"{plural(events, 'event')} resolved so far; comparisons are made from {MINIMUM_EVENTS} on."
    return "No comparison is significant so far."


def _untested(f: Finding) -> str:
    """That no test is possible, and the least data that one needs; no estimate."""
    lack = f.shortage
    return f"{HEADINGS[f.topic][0]}: {too_few(lack) if lack else 'no test yet, since all differences are alike'}."


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
    basis = f"{_interval(f, score)} on {count(f.number)} resolved questions{_p(f)}"
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
    basis = f"{_interval(f, _points)} on {count(f.number)} bets{_p(f)}"
    if not f.supported:
        return (
            "No model’s stakes differ significantly from Kelly’s rule at the prices it paid and its own forecasts"
            f" {f.details['condition']}: the clearest mean difference is that of {f.first}, {_points(abs(f.estimate))}"
            f" percentage points of cash ({basis})."
        )
    less, alike = ("less", f.details["below"]) if f.estimate < 0 else ("more", f.details["above"])
    return (
        f"{len(alike)} of {f.details['models']} models stake significantly {less} than Kelly’s rule would at"
        f" the prices they paid and their own forecasts {f.details['condition']}, most clearly {f.first}: a bet takes"
        f" {fraction(f.details['stake'])} of its cash on average, Kelly’s rule {fraction(f.details['kelly'])}"
        f" (difference {_points(abs(f.estimate))} percentage points, {basis})."
    )


def _profit(f: Finding) -> str:
    """The finding on earnings: the models whose corrected interval leaves out 0, by name; else that no model's does."""
    ends = f"{signed_percent(f.low)} to {signed_percent(f.high)}"
    basis = f"95 % interval, corrected for all models, {ends} over {plural(f.number, 'cohort')}"
    if ages := unfinished_words(f.details["ages"]):
        basis += f", {ages}"
    mean = f"the mean return of {f.first} is {signed_percent(f.estimate)} ({basis}{_p(f)})"
    clauses = []
    for names, one, several in (
        (f.details.get("above", ()), "earns", "earn"),
        (f.details.get("below", ()), "loses", "lose"),
    ):
        if names:
            clauses.append(f"{_listed(names)} {one if len(names) == 1 else several} money on paper")
    if f.supported and clauses:
        return f"{' and '.join(clauses)}: {mean}."
    return f"No model is shown to earn or to lose money: {mean}; only more cohorts can tell."


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])}{' and ' if names[1:] else ''}{names[-1]}"


def _interval(f: Finding, write: Callable[[float], str]) -> str:
    """The interval of the absolute difference, in the order of its bounds."""
    low, high = (f.low, f.high) if f.estimate >= 0 else (-f.high, -f.low)
    return f"95 % interval {write(low)} to {write(high)}"


def _p(f: Finding) -> str:
    return f", corrected p {p_value(f.p)}"


def _needed(f: Finding) -> str:
    """How much more data a small difference needs, if that is known."""
    if f.questions_more is None:
        return ""
    if not f.questions_more:
        return ". With this many questions we would probably have noticed a gap of 0.01; we did not"
    more = f"about {count(f.questions_more)} more resolved questions are needed"
    if f.weeks_more is not None:
        more += f" ({plural(f.weeks_more, 'week')} at the pace of the last four)"
    return f"; {more} to find a true difference of 0.01 with a probability of 80 %"


def _points(value: float) -> str:
    return number(100 * value, 1)


PAIRED = (
    "Paired test on the questions that both answered, clustered by event. The interval and p are corrected for the"
    " number of pairs of models."
)
ALPHA = "Difference of Brier scores on the same questions, clustered by event."
FAMILY = "Interval and p are corrected for the other claims of this page too (Holm)."
"""One page is one family of claims."""
HEADINGS: Mapping[str, tuple[str, str, str]] = {
    "market": (
        "The best model and the market", "leaderboard",
        "Paired test on the same questions, clustered by event. The interval and p are corrected for the number of"
        " models.",
    ),
    "worst": ("The best and the worst model", "forecasts", PAIRED),
    "prices": (
        "Forecasts with and without prices", "forecasts",
        "The same model, question and day under both prompt conditions; the mean over models, clustered by event.",
    ),
    "ensemble": ("The mean of the models and the market", "forecasts", ALPHA),
    "stakes": (
        "Bets and forecasts of the same model", "calibration",
        "Stake minus Kelly’s stake at the probability that the model stated for the side and the price that it paid, as"
        " shares of cash. Kelly stakes nothing without an edge and at most the largest legal bet; clustered by event."
        " Interval and p are corrected for the number of models.",
    ),
    "profit": (
        "Who earns money", "trading",
        "Mean over cohorts; interval over calendar weeks, since cohorts share weeks and markets, corrected for the"
        " number of models. With fewer than about"
        " twelve cohorts one rare shared win can still fall outside.",
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
    "runner-up": _pair,
}
