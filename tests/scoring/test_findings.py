"""Comparisons made from leaderboards and scores: their estimates, intervals, and what they leave out."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from scipy.stats import ttest_1samp

from scoring.leaderboard_keys import LeaderboardKey
from scoring.models import ForecastScore, Leaderboard
from scoring.selectors.findings import Finding, findings
from scoring.selectors.return_tests import return_error
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import LeaderboardContents, store_leaderboards
from tests.factories import WEEK, CohortFactory, MarketFactory, QuestionFactory, ask, end_question

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
    for number in range(5):
        forecast(number, priced=0.8 + number / 100, blind=0.6)
    compute_scores(at=END)
    gap = by_topic()["prices"]
    # Brier of YES at p: (1 - p)²; mean over GPT at 0.80 to 0.84 and Grok 0.2 below, against 0.6 and 0.4.
    with_prices = [((0.2 - n / 100) ** 2 + (0.4 - n / 100) ** 2) / 2 for n in range(5)]
    assert gap.estimate == pytest.approx((0.4**2 + 0.6**2) / 2 - sum(with_prices) / 5)
    assert gap.low < gap.estimate < gap.high
    assert (gap.number, gap.supported) == (5, True)
    assert findings().events == 5
    assert "worst" in by_topic()


def test_interval_of_what_prices_bring_stays_within_the_scores_range() -> None:
    for number, blind in enumerate((0.9, 0.89, 0.9, 0.85, 0.05)):
        question = QuestionFactory(markets=[MarketFactory(question=f"Will it rain in town {number}?")])
        for arm, p in (("priced", 0.9), ("blind", blind)):
            ask(question, {GPT: [p, 1 - p]}, arm=arm)
        end_question(question, "YES", at=WEEK + timedelta(days=3))
    compute_scores(at=END)
    gap = by_topic()["prices"]
    assert -1 <= gap.low < gap.estimate < gap.high == 1
    assert not gap.supported


def test_pair_counts_by_its_corrected_p_and_says_what_is_needed() -> None:
    """The interval is corrected as p is: it leaves out 0 only where the pair is significant."""
    pair = {"first": "a", "second": "b", "difference": -0.03, "se": 0.01, "events": 12, "questions_more": 275.0}
    for p, margin, supported in ((0.01, 0.0261, True), (0.2, 0.0401, False)):
        store([entry("a"), entry("b", brier=0.13)], pairs=[pair | {"p_holm": p, "margin": margin}])
        worst = by_topic()["worst"]
        assert (worst.first, worst.second, worst.estimate, worst.supported) == ("A", "B", 0.03, supported)
        assert (worst.low, worst.high) == pytest.approx((0.03 - margin, 0.03 + margin))
        assert (worst.low > 0) == supported
        assert worst.questions_more == 275


@pytest.mark.parametrize(("p", "margin"), [(0.04, 0.019), (0.06, 0.021)])
def test_market_is_compared_with_the_first_model_and_with_the_ensemble(p: float, margin: float) -> None:
    """The first model is the first in rank, and its test is corrected for the number of models."""
    first = entry("a", brier=0.3, alpha_ci=[0.01, 0.03], ranked_by="adjusted_brier", adjusted_brier=0.1)
    second = entry("b", rank=2, brier=0.2, ranked_by="adjusted_brier", adjusted_brier=0.2)
    tests = {"a": {"difference": 0.02, "p_holm": p, "margin": margin}}
    store([first, second, entry("ensemble", alpha_ci=[-0.0196, 0.0196], n=100)], market=tests)
    market = by_topic()["market"]
    assert (market.first, market.supported, market.low > 0) == ("A", p < 0.05, p < 0.05)
    ensemble = by_topic()["ensemble"]
    assert not ensemble.supported
    assert ensemble.questions_more == 685  # 100 (0.01 · 2.8016 / 0.01)² = 784.9, of which 100 are there


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
        expected = ttest_1samp(gaps, 0).pvalue
        assert expected <= test["p_holm"] <= 2 * expected + 1e-12, "corrected for two models"


def test_highest_mean_return_has_an_interval_corrected_for_the_number_of_models() -> None:
    CohortFactory(number=1, week_start=END - timedelta(weeks=4))
    CohortFactory(number=2, week_start=END - timedelta(weeks=3), status="completed", completed_at=END)
    CohortFactory(number=3, week_start=END - timedelta(weeks=2))  # one that they did not play
    weeks = {"1": {"2026-03-01": 4.0, "2026-03-08": 3.0, "2026-03-15": 5.0}, "2": {"2026-03-08": 2.0}}
    rows = [
        {"family": slug, "display_name": slug, "rank": rank, "external": False, "return_percent": 7.0 - rank,
         "return_ci": [1.0, 9.0], "cohorts": 2}
        for rank, slug in enumerate("abc", start=1)
    ]  # fmt: skip
    contents = LeaderboardContents(rows, {"weeks": dict.fromkeys("abc", weeks)})
    store_leaderboards({LeaderboardKey("trading"): contents}, at=END)
    profit, one = by_topic()["profit"], return_error(weeks).interval
    assert one is not None
    assert profit.low < one[0] < one[1] < profit.high
    assert profit.details == {"ages": [4]}


def test_largest_gap_between_stakes_and_kellys_names_its_direction() -> None:
    rows = [
        {
            "family": "a",
            "over_kelly": -0.3,
            "over_kelly_ci": [-0.4, -0.2],
            "bets": 50,
            "stake": 0.1,
            "kelly_stake": 0.4,
        },
        {"family": "b", "over_kelly": -0.1, "over_kelly_ci": [-0.2, 0.1], "bets": 60, "stake": 0.1, "kelly_stake": 0.2},
        {"family": "c", "over_kelly": 0.2, "over_kelly_ci": [0.1, 0.3], "bets": 70, "stake": 0.2, "kelly_stake": 0.0},
    ]
    store([entry("a")], forecasts_and_trades=rows)
    stakes = by_topic()["stakes"]
    assert (stakes.first, stakes.estimate, stakes.number) == ("A", -0.3, 50)
    assert stakes.details == {"alike": 1, "models": 3, "stake": 0.1, "kelly": 0.4, "condition": SHOWN}


def test_no_model_matches_kellys_stakes_only_if_none_is_told_apart() -> None:
    near = {"family": "a", "over_kelly": -0.1, "over_kelly_ci": [-0.15, -0.05], "bets": 90}
    far = {"family": "b", "over_kelly": -0.3, "over_kelly_ci": [-0.7, 0.1], "bets": 5}
    store([entry("a")], forecasts_and_trades=[row | {"stake": 0.1, "kelly_stake": 0.3} for row in (near, far)])
    stakes = by_topic()["stakes"]
    assert (stakes.first, stakes.supported, stakes.details["alike"]) == ("A", True, 1)


def test_calibration_names_its_condition() -> None:
    bins = [{"from": 0.8, "to": 0.9, "forecast": 0.85, "outcome": 0.7, "low": 0.6, "high": 0.8, "pairs": 50}]
    store([entry("a")], curves={"reliability": {"forecasters": {"a": bins}}})
    assert by_topic()["calibration"].details["condition"] == SHOWN


def test_comparisons_are_read_once_for_each_version_of_the_leaderboards() -> None:
    for number in range(4):
        forecast(number, priced=0.8, blind=0.6)
    compute_scores(at=END)
    first = findings()
    with CaptureQueriesContext(connection) as captured:
        assert findings() == first
    assert len(captured) == 2
    forecast(4, priced=0.8, blind=0.9)
    compute_scores(at=END + timedelta(days=1))
    assert by_topic()["prices"].number == 5
