"""Luck and risk by hand: drawdowns, volatility and simulated bettors."""

from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest
from django.test import Client

from scoring.models import BrierScore, Leaderboard
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import refresh_trading_leaderboards
from scoring.services.trading_risk import (
    ResolvedBet,
    odds_bettors,
    simulate_bettors,
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
)
from tests.markup import get_page, table_rows, visible_text
from tests.shared_rows import shared_rows

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


def test_volatility_is_of_the_mean_over_running_cohorts() -> None:
    later = {"2026-03-15": 6.0}
    report = trading_risk({"gpt-5.1": {"1": weeks(2, 4), "2": later}}, ["gpt-5.1"], "")
    row = report["families"]["gpt-5.1"]
    assert (report["weeks"], row["weeks"]) == (2, 2)
    assert row["weekly_volatility"] == pytest.approx(np.std([2, 5], ddof=1))


def scores() -> Any:
    return BrierScore.objects.order_by("pk")


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


def test_reckless_rival_does_not_raise_the_hurdle_of_luck() -> None:
    """17 of 20 even bets of 50 dollars are 3.1 deviations; a rival's one bet of 5,000 wins it in half of all cases."""
    bets = [ResolvedBet("steady", number, number < 17, 0.5, 0, 2, 100.0, 50.0) for number in range(20)]
    bets.append(ResolvedBet("reckless", 99, False, 0.5, 0, 2, 10_000.0, 5_000.0))
    rows = simulate_bettors(bets, ["steady", "reckless"])
    assert rows["steady"]["held_profit"] == "700.00"
    assert rows["steady"]["luckiest_bettor_share"] == rows["steady"]["odds_bettor_share"] < 0.01
    assert rows["reckless"]["luckiest_bettor_share"] == 1


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
            bet(agent := AgentFactory(cohort=cohort, slug=slug), market, side, "400.00")
            SnapshotFactory(agent=agent, taken_at=cohort.week_start + timedelta(days=4))
            resolve(market, "YES", at=cohort.week_start + timedelta(days=5))
    compute_scores(at=WEEK + timedelta(weeks=12))


season = shared_rows(partial(play, cohorts=10))


def test_page_makes_no_claim_on_luck_below_ten_events(client: Client) -> None:
    play(cohorts=9)
    text = visible_text(get_page(client, "/risk/"))
    assert "Whether GPT-5.2 was lucky: too few events for a claim yet, 9 of the 10 that it needs." in text
    assert "simulations, and the luckiest" not in text


def test_page_and_list_tell_how_far_luck_goes(season: None, client: Client) -> None:
    rows = {row["family"]: row for row in client.get(RISK).json()["results"]}
    gpt = rows["gpt-5.1"]
    assert (gpt["rank"], gpt["weeks"], gpt["resolved_stakes"], gpt["held_profit"]) == (1, 10, 10, "3000.00")
    page = get_page(client, "/risk/")
    text = visible_text(page).replace("\u2009", " ")
    assert "A bettor at the market’s own odds with the 10 resolved stakes of " in text
    assert "the luckiest of 2 such bettors, one for each model, in" in text
    lucky = gpt["luckiest_bettor_share"] >= 0.05
    assert ("no profit beyond luck is shown" in text) == lucky
    assert [row[1] for row in table_rows(page)][1:] == ["GPT-5.2", "Grok 4.1"]


def test_risk_is_the_same_until_another_bet_resolves(season: None) -> None:
    at = WEEK + timedelta(weeks=12)
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


def test_empty_arena_and_unknown_choices(client: Client) -> None:
    assert "Nothing to weigh yet" in visible_text(get_page(client, "/risk/"))
    assert client.get(RISK).json()["results"] == []
    assert client.get(RISK, {"methodology": "v9"}).status_code == 400
    assert client.get(RISK, {"family": "gpt-5.1"}).status_code == 400
    assert client.get("/risk/?methodology=v9").status_code == 404
