"""The comparison of two families in sentences, row by row."""

from typing import Any

import pytest

from agents.models import Family
from arena_site.pages.comparison_sentences import forecast_verdict, needed_questions, pair_rows, trading_verdict
from scoring.selectors.comparison import ReturnTest

ANN, BOB = Family(slug="ann", display_name="Ann"), Family(slug="bob", display_name="Bob")


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def pair(**changes: Any) -> dict[str, Any]:
    test = {"n": 40, "events": 12, "freedom": 8.0, "difference": -0.02, "margin": 0.03, "p_holm": 0.3, "pairs": 21}
    return {**test, "questions_more": 90, **changes}


NONE = "No significant difference"
GAP = "to notice a gap of 0.01 (80 % power)"
BRIER = "Difference in Brier score: −0.020 ± 0.030 on 40 common questions of 12 events. "


@pytest.mark.parametrize(
    ("changes", "headline", "text"),
    [
        (
            {}, NONE, BRIER + "p = 0.300, corrected for 21 pairs: not significant. 90 more resolved questions to notice"
            " a gap of 0.01 (80 % power), 8 weeks at the pace of the last four.",
        ),
        (
            {"questions_more": 0}, NONE, BRIER + "p = 0.300, corrected for 21 pairs: not significant. With this many"
            " questions we would probably have noticed a gap of 0.01; we did not.",
        ),
        ({"questions_more": None}, NONE, BRIER + "p = 0.300, corrected for 21 pairs: not significant."),
        ({"p_holm": 0.049}, "Ann is ahead", BRIER + "p = 0.049, corrected for 21 pairs: significant."),
        ({"p_holm": 0.05}, NONE, BRIER + "p = 0.050, corrected for 21 pairs: not significant. 90 more resolved"
            " questions to notice a gap of 0.01 (80 % power), 8 weeks at the pace of the last four."),
        (
            {"p_holm": 0.001, "difference": 0.02, "pairs": 1}, "Bob is ahead",
            "Difference in Brier score: +0.020 ± 0.030 on 40 common questions of 12 events. p = 0.001, corrected for 1"
            " pair: significant.",
        ),
        (
            {"p_holm": 0.001, "events": 9}, "Too few events",
            "Too few events for a claim yet, 9 of the 10 that it needs.",
        ),
        (
            {"p_holm": 0.001, "freedom": 2.99}, "Too few events",
            "Too few events for a claim yet, in effect 2.9 of the 3 that it needs.",
        ),
        (
            {"p_holm": None, "margin": None}, NONE, "Difference in Brier score: −0.020 on 40 common questions of 12"
            " events. The difference is the same on all events.",
        ),
    ],
)  # fmt: skip
def test_forecasts(changes: dict[str, Any], headline: str, text: str) -> None:
    verdict = forecast_verdict(ANN, BOB, pair(**changes), 12.5)
    assert (verdict.headline, plain(verdict.text)) == (headline, text)


@pytest.mark.parametrize(
    ("more", "pace", "text"),
    [
        (None, 5.0, ""),
        (1, None, f"1 more resolved question {GAP}."),
        (
            7,
            7.0,
            "7 more resolved questions to notice a gap of 0.01 (80 % power), 1 week at the pace of the last four.",
        ),
        (
            8,
            7.0,
            "8 more resolved questions to notice a gap of 0.01 (80 % power), 2 weeks at the pace of the last four.",
        ),
    ],
)
def test_questions_needed_say_their_weeks(more: int | None, pace: float | None, text: str) -> None:
    assert needed_questions(more, pace) == text


def returns(**changes: Any) -> ReturnTest:
    fields: dict[str, Any] = {
        "cohorts": 8,
        "weeks": 14,
        "difference": 3.5,
        "se": 1.0,
        "p": 0.1,
        "freedom": 3.0,
        "p_holm": 0.4,
    }
    return ReturnTest(**{**fields, "margin": 4.0, "cohorts_more": 12.4, "pairs": 21, **changes})


MEANS = "Ann minus Bob: +3.50 ± 4.00 percentage points over 8 common cohorts in 14 calendar weeks."


@pytest.mark.parametrize(
    ("changes", "headline", "text"),
    [
        (
            {}, NONE, f"{MEANS} p = 0.400, corrected for 21 pairs: not significant. About 12 more cohorts to notice a"
            " gap of 5 points (80 % power), one a week.",
        ),
        ({"cohorts_more": None}, NONE, f"{MEANS} p = 0.400, corrected for 21 pairs: not significant."),
        ({"p_holm": 0.01}, "Ann is ahead", f"{MEANS} p = 0.010, corrected for 21 pairs: significant."),
        (
            {"p_holm": 0.01, "difference": -3.5}, "Bob is ahead", "Ann minus Bob: −3.50 ± 4.00 percentage points over 8"
            " common cohorts in 14 calendar weeks. p = 0.010, corrected for 21 pairs: significant.",
        ),
        (
            {"p_holm": 0.01, "cohorts": 5, "weeks": 5}, "Too few cohorts",
            "Too few cohorts for a claim yet, 5 of the 6 that it needs.",
        ),
        ({"freedom": 1.65}, "Too few weeks", "Too few weeks for a claim yet, in effect 1.6 of the 3 that it needs."),
        (
            {"p_holm": None, "freedom": None}, "Too few weeks",
            "Too few weeks for a claim yet, in effect 0.0 of the 3 that it needs.",
        ),
        (
            {"p_holm": None, "margin": None}, NONE,
            f"{MEANS.replace(' ± 4.00', '')} The difference is the same in all weeks.",
        ),
    ],
)  # fmt: skip
def test_trading(changes: dict[str, Any], headline: str, text: str) -> None:
    verdict = trading_verdict(ANN, BOB, returns(**changes))
    assert (verdict.headline, plain(verdict.text)) == (headline, text)


def test_rows_of_pairs_say_what_more_would_tell_or_that_there_is_too_little() -> None:
    entries = [{"forecaster": slug, "display_name": slug.capitalize()} for slug in ("ann", "bob")]
    names = {"first": "ann", "second": "bob"}
    cohorts = {"cohorts": 8, "freedom": 3.0, "cohorts_more": 12.4}
    tests = [
        pair(), pair(questions_more=None), pair(questions_more=0), pair(events=9), pair(freedom=2.9),
        cohorts, {**cohorts, "cohorts": 5}, {**cohorts, "freedom": 1.0},
    ]  # fmt: skip
    rows = pair_rows(entries, [{**test, **names} for test in tests], 12.5)
    assert [(row["first_name"], row["second_name"]) for row in rows] == [("Ann", "Bob")] * 8
    assert [row["too_few"] or (row["more"], row["weeks"]) for row in rows] == [
        (90, "8 weeks"), (None, ""), (0, ""), "too few events", "too few events",
        (12, "12 weeks"), "too few cohorts", "too few weeks",
    ]  # fmt: skip
    assert pair_rows(entries, [{**pair(), **names}], None)[0]["weeks"] == ""
