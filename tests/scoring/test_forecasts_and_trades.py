"""Forecasts beside trades: stated probabilities, stakes, and what the forecasts would have earned."""

from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent
from markets.models import Market
from scoring.services.forecasts_and_trades import ForecastBet, family_figures, forecast_bets
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    MarketFactory,
    QuestionFactory,
    ask,
    bet,
    end_question,
    resolve,
)

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)


@pytest.fixture
def ada() -> Agent:
    """The first family's agent: of GPT."""
    return AgentFactory()


def bet_and_forecast(agent: Agent, side: str, amount: str, probabilities: list[float], **options: Any) -> Market:
    """A market at YES 0.40 on which the agent bet, and whose options it gave these probabilities."""
    market = MarketFactory()
    bet(agent, market, side, amount)
    ask(QuestionFactory(markets=[market]), {agent.family.slug: probabilities}, **options)
    return market


def figures(arm: str = "priced") -> dict[str, Any]:
    (row,) = family_figures(forecast_bets(arm))
    return row


def test_bet_stands_beside_the_forecast_of_its_side(ada: Agent) -> None:
    """Confidence 1 at YES 0.40, forecast 0.55; confidence 0.4 at NO 0.60, forecast 0.5."""
    asks = {"YES": ("0.42", "0.61"), "NO": ("0.61", "0.42")}
    bet_and_forecast(ada, "YES", "2500.00", [0.55, 0.45], asks=asks)
    bet_and_forecast(ada, "NO", "750.00", [0.5, 0.5])
    first, second = forecast_bets("priced")
    assert (first.probability, first.confidence, first.price, first.ask) == (0.55, 1.0, 0.4, 0.42)
    assert (second.probability, second.confidence, second.price, second.ask) == (0.5, pytest.approx(0.4), 0.6, 0.6)
    row = figures()
    assert (row["family"], row["bets"], row["markets"], row["resolved"]) == (ada.family.slug, 2, 2, 0)
    assert row["over_betting"] == pytest.approx(((1 - 0.55) + (0.4 - 0.5)) / 2)
    assert row["spearman"] == pytest.approx(1.0)
    assert row["positive_edge"] == 0.5  # 0.55 - 0.42 above 0, 0.5 - 0.6 below
    assert row["stake_edge"] == pytest.approx(1.0)
    assert row["over_betting_ci"] is None  # two events
    assert (row["stated_brier"], row["bet_return"]) == (None, None)


@pytest.mark.parametrize(
    ("side", "amount", "probability", "stake", "kelly"),
    [
        ("YES", "1000.00", 0.46, 0.1, 0.1),  # 0.06 / 0.6: the stake is Kelly's, though far from the forecast
        ("YES", "1000.00", 0.3, 0.1, 0.0),  # no edge
        ("YES", "500.00", 0.9, 0.05, 0.25),  # 0.5 / 0.6, more than is legal
        ("NO", "500.00", 0.32, 0.05, 0.2),  # 0.68 at 0.60
    ],
)
def test_stake_is_compared_with_kellys_at_the_own_forecast_and_price(
    ada: Agent, side: str, amount: str, probability: float, stake: float, kelly: float
) -> None:
    bet_and_forecast(ada, side, amount, [probability, 1 - probability])
    row = figures()
    expected = pytest.approx((stake, kelly, stake - kelly))
    assert (row["stake"], row["kelly_stake"], row["over_kelly"]) == expected


def test_resolved_bets_have_scores_and_a_return(ada: Agent) -> None:
    rain = bet_and_forecast(ada, "YES", "2500.00", [0.55, 0.45])
    snow = bet_and_forecast(ada, "YES", "750.00", [0.3, 0.7])
    resolve(rain, "YES")
    resolve(snow, "NO")
    row = figures()
    assert row["stated_brier"] == pytest.approx((0.45**2 + 0.3**2) / 2)
    assert row["bet_brier"] == pytest.approx((0 + 0.4**2) / 2)
    assert row["market_brier"] == pytest.approx((0.6**2 + 0.4**2) / 2)
    assert row["bet_return"] == pytest.approx(2500 / 0.4 / 3250)


def test_one_forecast_stands_behind_the_bets_of_two_cohorts(ada: Agent) -> None:
    market = MarketFactory()
    bet(ada, market, "YES", "500.00", week=2)
    second = AgentFactory(cohort=CohortFactory(), family=ada.family)
    bet(second, market, "YES", "500.00")
    ask(QuestionFactory(markets=[market]), {ada.family.slug: [0.55, 0.45]}, day=WEEK + timedelta(weeks=1))
    resolve(market, "YES")
    row = figures()
    assert (row["bets"], row["resolved"]) == (2, 2)
    assert row["over_betting_ci"] is None  # one event


def test_no_of_a_market_that_is_one_option_of_a_list_is_what_its_option_leaves(ada: Agent) -> None:
    one, second = MarketFactory(question="A"), MarketFactory(question="B", prices={"YES": "0.30", "NO": "0.70"})
    bet(ada, one, "NO", "500.00")
    question = QuestionFactory(markets=[one, second])
    ask(question, {ada.family.slug: [0.3, 0.5, 0.2]}, asks={"A": ("0.42", "0.63")})
    (compared,) = forecast_bets("priced")
    assert (compared.probability, compared.ask) == (pytest.approx(0.7), 0.63)
    end_question(question, "B")
    assert figures()["stated_brier"] == pytest.approx(0.09)


def test_only_forecasts_of_the_same_release_day_arm_and_methodology_count(ada: Agent) -> None:
    market = MarketFactory()
    bet(ada, market, "YES", "500.00")
    question = QuestionFactory(markets=[market])
    ask(question, {ada.family.slug: [0.9, 0.1]}, day=WEEK + timedelta(days=1))  # a later day
    ask(question, {"grok-4": [0.9, 0.1]})  # somebody else
    assert forecast_bets("priced") == []
    ask(question, {ada.family.slug: [0.6, 0.4]}, arm="blind")
    assert forecast_bets("priced") == []
    assert figures("blind")["stated"] == pytest.approx(0.6)
    assert forecast_bets("blind", "v1") == []


def test_a_cancelled_market_is_compared_and_not_scored(ada: Agent) -> None:
    resolve(bet_and_forecast(ada, "YES", "500.00", [0.6, 0.4]), None)
    row = figures()
    assert (row["bets"], row["resolved"], row["bet_brier"]) == (1, 0, None)


@pytest.mark.parametrize("events", [3, 4])
def test_intervals_of_differences_stay_within_their_range_and_need_four_events(events: int) -> None:
    """Stake less Kelly's is -0.24, -0.23, 0.05 and 0.06."""
    probabilities = ((0.9, 0.04), (0.9, 0.08), (0.5, 0.2), (0.5, 0.24))
    bets = []
    for number, (probability, confidence) in enumerate(probabilities):
        event = f"event {min(number, events - 1)}"
        bets.append(ForecastBet("a", number, event, probability, confidence, 0.5, 0.5, 100.0, None, 0.25))
    (row,) = family_figures(bets)
    for name in ("over_betting", "over_kelly"):
        interval = row[f"{name}_ci"]
        if events < 4:
            assert interval is None
        else:
            assert -1 <= interval[0] < row[name] < interval[1] <= 1


def test_interval_beside_kellys_stakes_is_corrected_for_the_number_of_models() -> None:
    stakes = (0.04, 0.08, 0.2, 0.24, 0.1)
    bets = []
    for number, stake in enumerate(stakes):
        bets.append(ForecastBet("a", number, f"event {number}", 0.6, stake, 0.5, 0.5, 100.0, None, 0.25))
    (alone,) = family_figures(bets)
    among_two, _ = family_figures([*bets, bets[0]._replace(family="b")])
    low, high = among_two["over_kelly_ci"]
    assert low < alone["over_kelly_ci"][0] < alone["over_kelly_ci"][1] < high
    assert among_two["over_betting_ci"] == alone["over_betting_ci"]
