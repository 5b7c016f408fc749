"""The comparison of two families in words: who is ahead, on which data, and how much more would tell."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import floor
from typing import Any, NamedTuple

from agents.models import Family
from arena_site.pages.filters import count, number, p_value, score, signed_number, signed_score
from scoring.constants import DETECTABLE_DIFFERENCE, SIGNIFICANCE
from scoring.selectors.claims import LEAST_COHORTS, LEAST_EVENTS, LEAST_FREEDOM, Shortage, shortage_of, weeks_at_pace
from scoring.selectors.comparison import ReturnTest

NO_DIFFERENCE = "No significant difference"
LEAST_DATA = (
    f"A claim needs {LEAST_EVENTS} events, or {LEAST_COHORTS} cohorts, and {LEAST_FREEDOM} that carry the difference"
    " (degrees of freedom); below that a row says what is too few."
)


class Verdict(NamedTuple):
    """The verdict of a comparison, or that there is too little data for one, and the sentences behind it."""

    headline: str
    text: str


def trading_verdict(first: Family, second: Family, test: ReturnTest) -> Verdict:
    """The test of two families' returns in words; no figure where it bears no claim."""
    if lack := shortage_of(asdict(test)):
        return _too_little(lack)
    margin = "" if test.margin is None else f" ± {number(test.margin)}"
    text = (
        f"{first.display_name} minus {second.display_name}: {signed_number(test.difference)}{margin} percentage points"
        f" over {plural(test.cohorts, 'common cohort')} in {plural(test.weeks, 'calendar week')}."
    )
    if test.p_holm is None:
        return Verdict(NO_DIFFERENCE, f"{text} The difference is the same in all weeks.")
    text += f" p {p_value(test.p_holm)}, corrected for {plural(test.pairs, 'pair')}: "
    if test.p_holm < SIGNIFICANCE:
        return _ahead(first if test.difference > 0 else second, text)
    return Verdict(NO_DIFFERENCE, f"{text}not significant. {needed_cohorts(test.cohorts_more)}".strip())


def forecast_verdict(
    first: Family, second: Family, pair: Mapping[str, Any], questions_per_week: float | None = None
) -> Verdict:
    """The test of two families' Brier scores in words; no figure where it bears no claim."""
    if lack := shortage_of(pair):
        return _too_little(lack)
    margin = "" if pair["margin"] is None else f" ± {score(pair['margin'])}"
    text = (
        f"Difference in Brier score: {signed_score(pair['difference'])}{margin} on"
        f" {plural(pair['n'], 'common question')} of {plural(pair['events'], 'event')}."
    )
    if pair["p_holm"] is None:
        return Verdict(NO_DIFFERENCE, f"{text} The difference is the same on all events.")
    text += f" p {p_value(pair['p_holm'])}, corrected for {plural(pair['pairs'], 'pair')}: "
    if pair["p_holm"] < SIGNIFICANCE:
        return _ahead(first if pair["difference"] < 0 else second, text)
    more = needed_questions(pair["questions_more"], questions_per_week)
    return Verdict(NO_DIFFERENCE, f"{text}not significant. {more}".strip())


def too_few(lack: Shortage) -> str:
    """That there is too little data for a claim, and the least that one needs."""
    found = f"in effect {number(floor(10 * lack.number) / 10, 1)}" if lack.effective else count(lack.number)
    return f"too few {lack.unit} for a claim yet, {found} of the {count(lack.least)} that it needs"


def needed_questions(more: int | None, questions_per_week: float | None) -> str:
    """How many more questions a gap of 0.01 needs, and how many weeks that is at the pace of the last four."""
    if more is None:
        return ""
    if not more:
        return "With this many questions we would probably have noticed a gap of 0.01; we did not."
    weeks = weeks_at_pace(more, questions_per_week)
    pace = "" if weeks is None else f", {plural(weeks, 'week')} at the pace of the last four"
    return f"{plural(more, 'more resolved question')} to notice a gap of 0.01 (80 % power){pace}."


def needed_cohorts(more: float | None) -> str:
    """How many more cohorts a gap of DETECTABLE_DIFFERENCE points needs; one starts each week."""
    if not more:
        return ""
    cohorts = plural(round(more), "more cohort")
    return f"About {cohorts} to notice a gap of {count(DETECTABLE_DIFFERENCE)} points (80 % power), one a week."


def plural(value: int, noun: str) -> str:
    """The number and the noun."""
    return f"{count(value)} {noun}{'' if value == 1 else 's'}"


def _ahead(family: Family, text: str) -> Verdict:
    return Verdict(f"{family.display_name} is ahead", f"{text}significant.")


def _too_little(lack: Shortage) -> Verdict:
    sentence = too_few(lack)
    return Verdict(f"Too few {lack.unit}", f"{sentence[0].upper()}{sentence[1:]}.")


def pair_rows(
    entries: Sequence[Mapping[str, Any]], pairs: Sequence[Mapping[str, Any]], questions_per_week: float | None
) -> list[Mapping[str, Any]]:
    """The tests of pairs with the names of both, and what more would tell: `more` questions or cohorts, and `weeks`.

    Of a test that bears no claim `too_few` says what is lacking.
    """
    names = {entry["forecaster"]: entry["display_name"] for entry in entries}
    rows: list[Mapping[str, Any]] = []
    for pair in pairs:
        row = {**pair, "first_name": names.get(pair["first"]), "second_name": names.get(pair["second"])}
        lack = shortage_of(pair)
        if lack is not None:
            rows.append(row | {"too_few": f"too few {lack.unit}"})
            continue
        more = pair["questions_more"] if "events" in pair else pair["cohorts_more"]
        more = None if more is None else round(more)
        weeks = weeks_at_pace(more, questions_per_week) if "events" in pair else more
        rows.append(row | {"too_few": "", "more": more, "weeks": "" if not weeks else plural(weeks, "week")})
    return rows
