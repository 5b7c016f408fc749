"""Comparisons made from leaderboards and scores: their estimates, intervals, and what they leave out."""

import math
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scoring.leaderboard_keys import LeaderboardKey
from scoring.models import ForecastScore, Leaderboard
from scoring.selectors.findings import WHOLE, Finding, UncorrectedFinding, corrected_claims, earning_claim, findings
from scoring.selectors.return_pairs import return_test
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import LeaderboardContents, store_leaderboards
from tests.factories import WEEK, CohortFactory, MarketFactory, QuestionFactory, ask, end_question
from tests.lazy_modules import stats

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)
GPT, GROK = "gpt-5.1", "grok-4"
SHOWN = "when shown the market’s prices"


def by_topic() -> dict[str, Finding]:
    return {finding.topic: finding for finding in findings().comparisons}


def forecast(number: int, *, priced: float, blind: float) -> None:
    """Grok and GPT forecast a market that resolves to YES, Grok worse by 0.2 in both conditions."""
    question = QuestionFactory(markets=[MarketFactory(question=f"Will it rain in town {number}?")])
    for arm, p in (("priced", priced), ("blind", blind)):
        ask(question, {GPT: [p, 1 - p], GROK: [p - 0.2, 1.2 - p]}, arm=arm)
    end_question(question, "YES", at=WEEK + timedelta(days=3))


def entry(slug: str, **values: Any) -> dict[str, Any]:
    return {
        "forecaster": slug, "family": slug, "display_name": slug.capitalize(), "reference": slug == "ensemble",
        "external": False, "rank": 1, "ranked_by": "brier", "brier": 0.1, "alpha": 0.02, "alpha_ci": None, "n": 40,
    } | values  # fmt: skip


def store(entries: list[dict[str, Any]], **report: Any) -> None:
    parts = {"data": {"events": 12}, "pairs": [], "curves": {}} | report
    store_leaderboards({LeaderboardKey("forecast", arm="priced"): LeaderboardContents(entries, parts)}, at=END)


def test_nothing_is_compared_in_an_empty_arena() -> None:
    assert findings() == ([], 0, None)


def test_prices_are_compared_on_the_same_questions_of_the_same_model() -> None:
    for number in range(10):
        forecast(number, priced=0.8 + number / 100, blind=0.6)
    compute_scores(at=END)
    gap = by_topic()["prices"]
    # Brier of YES at p: (1 - p)²; mean over GPT at 0.80 to 0.89 and Grok 0.2 below, against 0.6 and 0.4.
    with_prices = [((0.2 - n / 100) ** 2 + (0.4 - n / 100) ** 2) / 2 for n in range(10)]
    assert gap.estimate == pytest.approx((0.4**2 + 0.6**2) / 2 - sum(with_prices) / 10)
    assert gap.low < gap.estimate < gap.high
    assert (gap.number, gap.supported) == (10, True)
    assert findings().events == 10
    assert "worst" in by_topic()


def claim(topic: str, p: float, **changes: Any) -> UncorrectedFinding:
    """A claim of Brier scores whose se is 0.01, with 30 degrees of freedom."""
    estimate = 0.01 * float(stats.t.isf(p / 2, 30))
    values = {
        "first": "Ann", "second": "", "estimate": estimate, "se": 0.01, "freedom": 30.0, "p": p, "p_family": p,
        "number": 100, "questions": 100.0, "basis": 40, "details": {},
    }  # fmt: skip
    return UncorrectedFinding(topic, **(values | changes))


def test_page_is_one_family_by_holm_and_an_interval_leaves_out_0_exactly_where_its_p_is_below_5_percent() -> None:
    claims = [claim("market", 0.01), claim("worst", 0.02), claim("prices", 0.04), claim("ensemble", 0.012)]
    found = {finding.topic: finding for finding in corrected_claims(claims)}
    assert {topic: round(finding.p or 0, 6) for topic, finding in found.items()} == {
        "market": 0.04, "ensemble": 0.04, "worst": 0.04, "prices": 0.04,
    }  # fmt: skip
    assert all(finding.low > 0 for finding in found.values())
    found = {finding.topic: finding for finding in corrected_claims([claim("market", 0.02), claim("worst", 0.03)])}
    assert (found["market"].supported, found["worst"].supported) == (True, True)
    found = {finding.topic: finding for finding in corrected_claims([claim("market", 0.03), claim("worst", 0.04)])}
    assert [finding.supported for finding in found.values()] == [False, False]
    assert all(finding.low <= 0 for finding in found.values())


def test_claim_of_a_family_is_corrected_for_it_and_for_the_page() -> None:
    (alone,) = corrected_claims([claim("worst", 0.002, p_family=0.042)])
    assert (alone.p, alone.supported, alone.low > 0) == (pytest.approx(0.042), True, True)
    first, second = corrected_claims([claim("worst", 0.002, p_family=0.042), claim("prices", 0.9)])
    assert (first.p, first.supported, first.low > 0) == (pytest.approx(0.084), False, False)
    assert not second.supported


def test_questions_needed_count_questions_at_the_level_of_the_verdict_beside_them() -> None:
    """50 where one claim is made: 100 (0.00438 · 2.8016 / 0.01)² = 150.5; the level of four is stricter."""
    (one,) = corrected_claims([claim("market", 0.3, se=0.00438)], 12.5)
    assert (one.questions_more, one.weeks_more) == (51, 5)
    four = corrected_claims([claim(name, 0.3, se=0.00438) for name in ("market", "worst", "prices", "ensemble")])
    level = float(stats.norm.ppf(1 - 0.05 / 2 / 4) + stats.norm.ppf(0.8))
    assert [finding.questions_more for finding in four] == [math.ceil(100 * (0.438 * level) ** 2) - 100] * 4
    assert four[0].weeks_more is None, "without a pace"


def test_interval_of_a_return_ends_at_a_total_loss() -> None:
    tests = {"gpt": {"se": 90.0, "freedom": 5.0, "p": 0.4}}
    entry = {"family": "gpt", "display_name": "GPT", "return_percent": -20.0, "cohorts": 6}
    profit = earning_claim([entry], tests, {}, END)
    assert profit is not None
    (found,) = corrected_claims([profit])
    assert (found.low, found.high > 100) == (-100.0, True)
    (difference,) = corrected_claims([claim("market", 0.9, se=5.0, bounds=WHOLE)])
    assert (difference.low, difference.high) == (-1.0, 1.0)


def test_too_little_data_bears_no_claim_and_takes_no_part_in_the_correction() -> None:
    claims = [claim("market", 0.001, basis=9), claim("worst", 0.04), claim("prices", 0.001, freedom=2.9)]
    few, enough, narrow = corrected_claims(claims)
    for finding, lack in ((few, ("events", 9, 10, False)), (narrow, ("events", 2.9, 3, True))):
        assert (finding.shortage, finding.supported, finding.p, finding.questions_more) == (lack, False, None, None)
    assert (enough.shortage, enough.supported, enough.p) == (None, True, pytest.approx(0.04))


def test_every_model_whose_corrected_interval_leaves_out_0_is_named_among_those_who_earn() -> None:
    """A steady earner below a risky rival with the highest mean: naming only the highest, nobody earned."""
    ranked = [
        {"family": "risky", "display_name": "Risky", "return_percent": 9.0, "cohorts": 26},
        {"family": "steady", "display_name": "Steady", "return_percent": 2.0, "cohorts": 26},
        {"family": "loser", "display_name": "Loser", "return_percent": -3.0, "cohorts": 26},
        {"family": "new", "display_name": "New", "return_percent": 4.0, "cohorts": 1},
    ]
    tests: dict[str, dict[str, Any]] = {
        "risky": {"se": 6.0, "freedom": 9.0, "p": 0.17},
        "steady": {"se": 0.4, "freedom": 9.0, "p": 0.0007},
        "loser": {"se": 0.5, "freedom": 9.0, "p": 0.0002},
        "new": {"se": None, "freedom": None, "p": None},
    }
    earning = earning_claim(ranked, tests, {"ages": []}, END)
    assert earning is not None
    (found,) = corrected_claims([earning])
    assert (found.first, found.supported) == ("Loser", True)
    assert found.details == {"ages": [], "above": ["Steady"], "below": ["Loser"]}
    found, *_ = corrected_claims([earning, *(claim(f"other {k}", 0.9) for k in range(40))])
    assert found.details == {"ages": [], "above": [], "below": ["Loser"]}, "0.0014 for three models, times 41 claims"


def test_who_earns_is_told_from_the_stored_tests_with_the_ages_of_cohorts() -> None:
    for number in range(1, 7):
        CohortFactory(number=number, week_start=END - timedelta(weeks=number))
    weeks = {str(k): {f"2026-0{1 + k % 3}-0{k}": 5.0 + k % 2} for k in range(1, 7)}
    rows = [
        {"family": slug, "display_name": slug.upper(), "rank": rank, "external": False, "return_percent": 5.5,
         "cohorts": 6} for rank, slug in enumerate("ab", start=1)
    ]  # fmt: skip
    report = {"weeks": dict.fromkeys("ab", weeks), "earning": dict.fromkeys("ab", return_test(weeks))}
    store_leaderboards({LeaderboardKey("trading"): LeaderboardContents(rows, report)}, at=END)
    profit = by_topic()["profit"]
    assert (profit.details["above"], profit.details["below"]) == (["A", "B"], [])
    assert profit.details["ages"] == [1, 2, 3, 4, 5, 6]


def test_stakes_name_the_clearest_model_and_all_that_differ_in_its_direction() -> None:
    rows = []
    for slug, gap, p in (("a", -0.1, 0.0001), ("b", -0.3, 0.4), ("c", -0.2, 0.002), ("d", 0.2, 0.001)):
        test = {"se": 0.02, "freedom": 20.0, "p": p, "margin": 0.04, "events": 30}
        rows.append({"family": slug, "over_kelly": gap, "over_kelly_test": test, "bets": 50, "events": 30, "stake": 0.1,
                     "kelly_stake": 0.2})  # fmt: skip
    store([entry("a")], forecasts_and_trades=rows)
    stakes = by_topic()["stakes"]
    assert (stakes.first, stakes.estimate, stakes.number, stakes.supported) == ("A", -0.1, 50, True)
    details = {"models": 4, "stake": 0.1, "kelly": 0.2, "condition": SHOWN}
    assert stakes.details == details | {"above": ["d"], "below": ["A", "c"]}


def test_market_tests_are_those_of_the_library_with_the_market_as_a_forecaster() -> None:
    for number in range(6):
        forecast(number, priced=0.6 + number / 20, blind=0.6)
    compute_scores(at=END)
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    alphas = {row["family"]: row["alpha"] for row in board.entries if not row["reference"]}
    for slug in (GPT, GROK):
        rows = ForecastScore.objects.filter(forecast__family__slug=slug, forecast__arm="priced")
        gaps = [row.market_brier - row.brier for row in rows]
        test = board.report["market"][slug]
        assert test["difference"] == pytest.approx(alphas[slug])
        expected = stats.ttest_1samp(gaps, 0).pvalue
        assert expected <= test["p_holm"] <= 2 * expected + 1e-12, "corrected for two models"


def test_comparisons_are_read_once_for_each_version_of_the_leaderboards() -> None:
    for number in range(4):
        forecast(number, priced=0.8 + number / 100, blind=0.6)
    compute_scores(at=END)
    first = findings()
    with CaptureQueriesContext(connection) as captured:
        assert findings() == first
    assert len(captured) == 2
    forecast(4, priced=0.8, blind=0.9)
    compute_scores(at=END + timedelta(days=1))
    assert by_topic()["prices"].number == 5
