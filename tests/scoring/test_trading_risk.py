"""Luck and risk by hand: drawdowns, Sharpe ratios, first places of resamples, locked capital and simulated bettors."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from django.test import Client

from agents.models import Agent
from forecast_rank.metrics.uncertainty import resample_counts
from scoring.models import BrierScore, Leaderboard
from scoring.selectors.valuations import valuations
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import refresh_trading_leaderboards
from scoring.services.trading_risk import (
    first_shares,
    locked_returns,
    odds_bettors,
    sharpe_ratio,
    trading_risk,
    worst_drawdown,
)
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    FamilyFactory,
    MarketFactory,
    SnapshotFactory,
    bet,
    resolve,
    sale,
)
from tests.markup import element, get_page, table_rows, visible_text

pytestmark = pytest.mark.django_db
SETTLED = WEEK + timedelta(days=30)
RISK = "/api/v1/risk/"


def weeks(*returns: float) -> dict[str, float]:
    return {f"2026-03-{8 + 7 * place:02}" if place < 3 else f"2026-04-{place:02}": value
            for place, value in enumerate(returns)}  # fmt: skip


def test_drawdown_is_the_largest_fall_from_the_highest_value_before() -> None:
    assert worst_drawdown(weeks(10, -22, 44, -33)) == pytest.approx(25)  # 110 to 88, then 132 to 99
    assert worst_drawdown(weeks(5, 0, 3)) == 0
    assert worst_drawdown(weeks(-100)) == 100


def test_sharpe_ratio_is_the_mean_by_the_deviation_without_an_interval_below_six_weeks() -> None:
    five = np.array([1.0, 3.0, 1.0, 3.0, 2.0])
    assert sharpe_ratio(five, resample_counts(5).astype(float)) == (2.0, None)
    assert sharpe_ratio(np.array([1.0, 1.0]), resample_counts(2).astype(float)) == (None, None)
    assert sharpe_ratio(np.array([1.0]), resample_counts(1).astype(float)) == (None, None)


def test_interval_of_the_sharpe_ratio_holds_in_simulated_worlds() -> None:
    generator, counts = np.random.default_rng(3), resample_counts(8, 1000).astype(float)
    covered = 0
    for _ in range(300):
        _, interval = sharpe_ratio(generator.normal(0.4, 1, 8), counts)
        assert interval is not None
        covered += interval[0] <= 0.4 <= interval[1]
    assert 0.89 <= covered / 300 <= 0.99


def test_first_places_of_resamples_are_shared_by_equals() -> None:
    counts = resample_counts(6, 500).astype(float)
    better, worse = [2.0, 1, 3, 2, 1, 3], [1.0, 0, 2, 1, 0, 2]
    assert first_shares(np.array([better, worse]), counts) == [1, 0]
    assert first_shares(np.array([better, worse, better]), counts) == [0.5, 0, 0.5]
    assert first_shares(np.zeros((0, 6)), counts) == []
    assert first_shares(np.array([better[:5], worse[:5]]), counts[:, :5]) == [None, None]


def test_volatility_is_of_the_mean_over_running_cohorts() -> None:
    later = {"2026-03-15": 6.0}
    report = trading_risk([], {}, {"gpt-5.1": {"1": weeks(2, 4), "2": later}}, ["gpt-5.1"], "")
    row = report["families"]["gpt-5.1"]
    assert (report["weeks"], row["weeks"]) == (2, 2)
    assert row["weekly_volatility"] == pytest.approx(np.std([2, 5], ddof=1))
    assert row["sharpe"] == pytest.approx(3.5 / np.std([2, 5], ddof=1))


def scores() -> Any:
    return BrierScore.objects.order_by("pk")


def test_return_on_locked_capital_is_the_profit_of_a_dollar_for_a_week() -> None:
    agent = AgentFactory(slug="gpt-5.1")
    trade = bet(agent, MarketFactory(), "YES", "500.00")
    sale(trade.position, "40", week=2)  # after a week, at the price paid: $200 of the cost are free
    resolve(trade.market, "YES", at=trade.executed_at + timedelta(weeks=3))
    SnapshotFactory(agent=agent, taken_at=trade.executed_at + timedelta(weeks=4))
    agents = list(Agent.objects.select_related("family", "cohort__methodology"))
    # 750 shares pay $750, which cost $300: a profit of 450 on 500 + 300 + 300 dollar-weeks.
    assert locked_returns(agents, valuations(agents), None) == {"gpt-5.1": pytest.approx(100 * 450 / 1100)}


def test_bettor_at_the_markets_odds_wins_as_often_as_the_price_says() -> None:
    winner, loser = AgentFactory(slug="gpt-5.1"), AgentFactory(slug="grok-4")
    market = MarketFactory()
    for agent, side in ((winner, "YES"), (loser, "NO")):
        bet(agent, market, side, "600.00")
    resolve(market, "YES")
    compute_scores(at=SETTLED)
    rows = odds_bettors(scores(), ["gpt-5.1", "grok-4"])
    gpt, grok = rows["gpt-5.1"], rows["grok-4"]
    assert (gpt["held_profit"], gpt["resolved_stakes"]) == ("900.00", 1)
    assert gpt["odds_bettor_share"] == pytest.approx(0.40, abs=0.02)
    # Of the two bettors one always wins, but NO pays only 1000 - 600.
    assert gpt["luckiest_bettor_share"] == gpt["odds_bettor_share"]
    assert (grok["held_profit"], grok["odds_bettor_share"], grok["luckiest_bettor_share"]) == ("-600.00", 1, 1)
    assert odds_bettors(scores(), ["gpt-5.1", "grok-4"]) == rows


def test_bets_of_external_agents_change_no_models_figures() -> None:
    first, second = MarketFactory(), MarketFactory()
    external = FamilyFactory(slug="visitor", external=True, active=False, track="closed")
    gpt, visitor = AgentFactory(slug="gpt-5.1"), AgentFactory(family=external)
    resolve(bet(gpt, second, "YES", "500.00").market, "YES")
    compute_scores(at=SETTLED)
    alone = odds_bettors(scores(), ["gpt-5.1"])
    resolve(bet(visitor, first, "YES", "900.00").market, "NO")
    compute_scores(at=SETTLED)
    bettors = odds_bettors(scores(), ["gpt-5.1"])
    assert bettors["gpt-5.1"] == alone["gpt-5.1"]
    assert bettors["visitor"]["luckiest_bettor_share"] is None


def test_sides_of_a_market_exclude_each_other() -> None:
    agent, market = AgentFactory(slug="gpt-5.1"), MarketFactory(prices={"Lakers": "0.55", "Celtics": "0.45"})
    bet(agent, market, "Lakers", "550.00")
    bet(agent, market, "Celtics", "450.00")
    resolve(market, "Lakers")
    compute_scores(at=SETTLED)
    row = odds_bettors(scores(), ["gpt-5.1"])["gpt-5.1"]  # $1,000 are back whoever wins
    assert (row["held_profit"], row["odds_bettor_share"]) == ("0.00", 1)


def play(cohorts: int) -> None:
    """Cohorts of two families, one of which wins a bet in most of them."""
    for number in range(cohorts):
        cohort = CohortFactory()
        for slug, side in (("gpt-5.1", "YES" if number % 4 else "NO"), ("grok-4", "NO")):
            market = MarketFactory()
            bet(AgentFactory(cohort=cohort, slug=slug), market, side, "400.00")
            resolve(market, "YES", at=cohort.week_start + timedelta(days=5))
    compute_scores(at=WEEK + timedelta(weeks=10))


@pytest.fixture
def season() -> None:
    play(cohorts=8)


def test_title_claims_no_interval_of_too_few_weeks(client: Client) -> None:
    play(cohorts=4)
    assert {row["sharpe_ci"] for row in client.get(RISK).json()["results"]} == {None}
    title = visible_text(element(get_page(client, "/risk/"), "figure.intervals"))
    assert "The Sharpe ratio of each model, of too few calendar weeks for an interval." in title


def test_page_and_list_tell_how_far_luck_goes(season: None, client: Client) -> None:
    rows = {row["family"]: row for row in client.get(RISK).json()["results"]}
    gpt = rows["gpt-5.1"]
    assert (gpt["rank"], gpt["weeks"], gpt["resolved_stakes"], gpt["held_profit"]) == (1, 8, 8, "2800.00")
    assert gpt["first_share"] > 0.95
    assert gpt["sharpe_ci"][0] < gpt["sharpe"] < gpt["sharpe_ci"][1]
    page = get_page(client, "/risk/")
    text = visible_text(page).replace("\u2009", " ")
    assert "GPT-5.2 has the highest mean return over 8 cohorts (8 unfinished, " in text
    assert f"is first in {100 * gpt['first_share']:.1f} % of 2,000 resamples of the 8 calendar weeks." in text
    assert "A bettor at the market’s own odds with the 8 resolved stakes of " in text
    assert "the luckiest of 2 such bettors, one for each model, in" in text
    lucky = gpt["luckiest_bettor_share"] >= 0.05
    assert ("no profit beyond luck is shown" in text) == lucky
    assert [row[1] for row in table_rows(page)][1:] == ["GPT-5.2", "Grok 4.1"]
    assert "The interval of the Sharpe ratio lies above 0 for" in visible_text(element(page, "figure.intervals"))
    for extension in ("csv", "svg", "png"):
        assert client.get(f"/risk/charts/sharpe.{extension}").status_code == 200
    assert client.get("/embed/risk/charts/sharpe/").status_code == 200


def test_risk_is_the_same_until_another_bet_resolves(season: None) -> None:
    at = WEEK + timedelta(weeks=10)
    stored = stored_risk()
    assert refresh_trading_leaderboards(at=at)
    assert stored_risk() == stored
    market = MarketFactory()
    bet(AgentFactory(cohort=CohortFactory(), slug="gpt-5.1"), market, "YES", "400.00")
    resolve(market, "YES", at=at)
    compute_scores(at=at)
    before, after = (risk["families"]["gpt-5.1"]["resolved_stakes"] for risk in (stored, stored_risk()))
    assert after == before + 1


def stored_risk() -> Any:
    return Leaderboard.objects.get(protocol="trading", methodology="").report["risk"]


def test_past_instants_have_their_own_figures(season: None, client: Client) -> None:
    at = {"as_of": (WEEK + timedelta(weeks=3)).isoformat().replace("+00:00", "Z")}
    (gpt, _) = client.get(RISK, at).json()["results"]
    assert (gpt["family"], gpt["resolved_stakes"], gpt["first_share"]) == ("gpt-5.1", 3, None)
    assert "resolved stakes" in visible_text(get_page(client, "/risk/?as_of=2026-03-29"))


def test_empty_arena_and_unknown_choices(client: Client) -> None:
    assert "Nothing to weigh yet" in visible_text(get_page(client, "/risk/"))
    assert client.get(RISK).json()["results"] == []
    assert client.get(RISK, {"methodology": "v9"}).status_code == 400
    assert client.get(RISK, {"family": "gpt-5.1"}).status_code == 400
    assert client.get("/risk/?methodology=v9").status_code == 404
