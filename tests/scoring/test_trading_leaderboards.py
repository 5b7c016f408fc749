"""The trading leaderboard by hand: each number of an entry recomputed from what was bet and what happened."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Agent, Family
from cohorts.models import Methodology
from markets.models import Market
from scoring.leaderboard_keys import to_json
from scoring.models import BrierScore, Leaderboard
from scoring.selectors.competition import competition_index
from scoring.selectors.valuations import bet_records, valuations
from scoring.services.score_drift import brier_score_drift
from scoring.services.scores import clear_scores, compute_scores, score_trades
from scoring.services.trading_leaderboards import (
    compute_trading_leaderboards,
    refresh_trading_leaderboards,
    store_leaderboards,
    trading_leaderboard,
)
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    SnapshotFactory,
    bet,
    resolve,
    reverse_to,
    sale,
)
from tests.lazy_modules import stats
from tests.scoring.reads import statements
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
SETTLED = WEEK + timedelta(days=30)


def entry(family: Family, methodology: str = "") -> dict[str, Any]:
    return next(row for row in trading_leaderboard(methodology).entries if row["family"] == family.slug)


def again(agent: Agent) -> Agent:
    """The same family's agent in the next cohort."""
    return AgentFactory(cohort=CohortFactory(), family=agent.family)


def lose(agent: Agent, amount: str) -> None:
    """A bet on YES at 0.40 of a market that resolves NO."""
    market = MarketFactory()
    bet(agent, market, "YES", amount)
    resolve(market, "NO")


def play() -> int:
    """An agent that bet 2,500 on YES at 0.40 (confidence 1, won), 750 on NO at 0.60 (0.4, lost), and 337.50 at 0.25.

    The last market, on which its confidence was 0.2, was cancelled.
    """
    ada = AgentFactory()
    sure, doubted, void = MarketFactory(), MarketFactory(), MarketFactory(prices={"A": "0.25", "B": "0.75"})
    bet(ada, sure, "YES", "2500.00")
    bet(ada, doubted, "NO", "750.00")
    bet(ada, void, "A", "337.50")
    resolve(sure, "YES")
    resolve(doubted, "YES")
    resolve(void, None)
    compute_scores(at=SETTLED)
    return ada.pk


season = shared_rows(play)


@pytest.fixture
def ada(season: int, db: None) -> Agent:
    return Agent.objects.select_related("family").get(pk=season)


def test_scores_by_hand(ada: Agent) -> None:
    """Brier (0 + 0.16) / 2; market ((0.4-1)² + 0.6²) / 2 = 0.36; 2,500 became 6,250 and 750 nothing."""
    row = entry(ada.family)
    assert row["brier"] == pytest.approx(0.08)
    assert row["bss_random"] == pytest.approx(1 - 0.08 / 0.25)
    assert row["bss_market"] == pytest.approx(1 - 0.08 / 0.36)
    assert (row["win_rate"], row["resolved_bets"], row["cohorts"]) == (0.5, 2, 1)
    assert (Decimal(row["total_value"]), Decimal(row["pnl"])) == (Decimal("13000.00"), Decimal("3000.00"))
    assert row["return_percent"] == pytest.approx(30.0)
    assert (row["return_se"], row["return_ci"]) == (None, None)


def test_cancelled_market_counts_in_no_score(ada: Agent) -> None:
    assert BrierScore.objects.filter(market__status=Market.Status.CANCELLED).count() == 0
    assert BrierScore.objects.count() == 2


def test_a_trade_is_scored_once_and_not_before_its_market_is_resolved(ada: Agent) -> None:
    open_market = MarketFactory()
    bet(ada, open_market, week=2)
    assert score_trades(at=SETTLED) == 0
    resolve(open_market, "NO", at=SETTLED + timedelta(days=2))
    assert score_trades(at=SETTLED + timedelta(days=1)) == 0  # not resolved by then
    assert [score_trades(at=SETTLED + timedelta(days=2)) for _ in range(2)] == [1, 0]


def test_family_is_scored_over_all_its_bets_and_not_by_a_mean_of_means(ada: Agent) -> None:
    second = again(ada)
    lose(second, "1250.00")  # confidence 0.5: 0.25
    compute_scores(at=SETTLED)
    assert entry(ada.family)["brier"] == pytest.approx((0 + 0.16 + 0.25) / 3)
    assert bet_records([second])[second.pk].brier == pytest.approx(0.25)


def test_family_return_is_the_mean_over_cohorts_with_students_interval(ada: Agent) -> None:
    """Returns of 30 and -12.5 %: mean 8.75, SE 21.25, t(0.975, 1) = 12.7062."""
    later = again(ada)
    lose(later, "1250.00")
    track(ada, later)
    row = entry(ada.family)
    assert row["cohorts"] == 2
    assert row["return_percent"] == pytest.approx(8.75)
    assert row["return_se"] == pytest.approx(21.25)
    assert row["return_ci"] == pytest.approx((-100, 8.75 + 12.7062 * 21.25), rel=1e-5)
    assert Decimal(row["pnl"]) == Decimal("1750.00")
    assert Decimal(row["total_value"]) == Decimal("10875.00")


def mark(agent: Agent, days: int, value: str) -> None:
    """A snapshot, so many days after the first Sunday."""
    SnapshotFactory(agent=agent, taken_at=WEEK + timedelta(days=days), cash=Decimal(value))


def track(*agents: Agent) -> None:
    """A snapshot in the first week of each agent's cohort, which makes it a week."""
    for agent in agents:
        SnapshotFactory(agent=agent, taken_at=agent.cohort.week_start + timedelta(days=5), cash=Decimal(10_000))


def test_interval_of_the_return_takes_calendar_weeks_as_clusters() -> None:
    """Cohort 1 gains 2 and 4 points in weeks 1 and 2, cohort 2 gains 1 and 2 in weeks 2 and 3.

    Y = 2, 5, 2 and n = 1, 2, 1: R = 9/4, r = -1/4, 1/2, -1/4 and h = 1/4, 1/2, 1/4, so that CR3 would be
    sqrt(2/3 (1/9 + 1 + 1/9)) / 2, with 33^2 / 657 degrees of freedom. Independent cohort-weeks have more,
    sqrt(1/16 + 49/16 + 25/16 + 1/16) / 2. The sources' s / sqrt(n) is 3 / 2.
    """
    first = AgentFactory()
    second = again(first)
    for agent, amount in ((first, "400.00"), (second, "200.00")):
        bet(agent, market := MarketFactory(), "YES", amount)
        resolve(market, "YES")
    for agent, days, value in ((first, 7, "10200"), (first, 13, "10600"), (second, 14, "10100"), (second, 20, "10300")):
        mark(agent, days, value)
    row = entry(first.family)
    assert row["return_percent"] == pytest.approx(4.5)
    assert row["return_se"] == pytest.approx((76 / 16) ** 0.5 / 2)
    assert row["return_se_cohorts"] == pytest.approx(1.5)
    reach = stats.t(33**2 / 657).ppf(0.975) * (76 / 16) ** 0.5 / 2
    assert row["return_ci"] == pytest.approx((4.5 - reach, 4.5 + reach))
    assert trading_leaderboard().report["weeks"][first.family.slug] == {
        1: {"2026-03-08": 2.0, "2026-03-15": 4.0}, 2: {"2026-03-15": 1.0, "2026-03-22": 2.0},
    }  # fmt: skip


def test_past_leaderboard_takes_the_weeks_by_then() -> None:
    agent = AgentFactory()
    mark(agent, 7, "10200")
    mark(agent, 13, "10600")
    mark(agent, 15, "10500")
    weeks = trading_leaderboard(at=WEEK + timedelta(days=14)).report["weeks"]
    assert weeks == {agent.family.slug: {1: {"2026-03-08": 2.0, "2026-03-15": 4.0}}}


def test_missing_snapshot_of_a_sunday_is_the_one_before_it() -> None:
    agent = AgentFactory()
    mark(agent, 5, "10100")
    mark(agent, 22, "10300")
    weeks = trading_leaderboard(at=WEEK + timedelta(days=22)).report["weeks"][agent.family.slug][1]
    assert weeks == {"2026-03-08": 1.0, "2026-03-15": 0.0, "2026-03-22": 0.0, "2026-03-29": 2.0}


def test_families_that_differ_in_one_shared_week_are_tied_in_ranks_and_on_every_page(client: Client) -> None:
    """15, 16.5 and 18 % in three cohorts, but all of it in the week that they share: one win, and no three.

    Paired by cohort t would be 19.1 with 2 degrees of freedom, p = .003.
    """
    ada = [AgentFactory()]
    idle = [AgentFactory(cohort=ada[0].cohort)]
    for _ in range(2):
        ada.append(again(ada[-1]))
        idle.append(AgentFactory(cohort=ada[-1].cohort, family=idle[0].family))
    market = MarketFactory()
    for agent, amount in zip(ada, ("1000.00", "1100.00", "1200.00"), strict=True):
        bet(agent, market, "YES", amount)
    resolve(market, "YES")
    for agent in (*ada, *idle):
        mark(agent, 14, "10000")
        mark(agent, 20, "10000")
    first, second = ada[0].family, idle[0].family
    assert entry(first)["return_percent"] == pytest.approx(16.5)
    ranges = {row["family"]: (row["rank_low"], row["rank_high"]) for row in trading_leaderboard().entries}
    assert ranges == {first.slug: (1, 2), second.slug: (1, 2)}
    refresh_trading_leaderboards(at=SETTLED)
    (pair,) = Leaderboard.objects.get(methodology="").report["pairs"]
    test = client.get(f"/api/v1/comparisons/{first.slug}/{second.slug}/").json()["trades"]["test"]
    assert {name: test[name] for name in test if name != "pairs"} == pytest.approx(
        {name: pair[name] for name in test if name != "pairs"}
    )
    assert test["p_holm"] > 0.05
    assert test["difference"] > 0
    assert (test["margin"], test["freedom"]) == (None, 1.0), "one week carries the difference"
    page = client.get("/trading/").content.decode()
    assert "Too few cohorts to tell who returns most" in page
    comparison = client.get(f"/compare/{first.slug}/{second.slug}/", follow=True).content.decode()
    assert '<p class="headline">Too few ' in comparison


def test_interval_of_the_win_rate_stays_within_0_and_1_and_has_a_width() -> None:
    """Four of four by the beta form: mu = .9 and k = 4, the 2.5 % point of Beta(3.6, .4) is 1 - .487631."""
    agent = AgentFactory()
    for number in range(4):
        row = entry(agent.family)
        assert (row["win_rate_ci"], row["resolved_events"]) == (None, number)
        bet(again(agent), market := MarketFactory(), "YES", "2500.00")
        resolve(market, "YES")
        compute_scores(at=SETTLED)
    row = entry(agent.family)
    assert row["win_rate"] == 1
    assert row["win_rate_ci"] == pytest.approx((1 - 0.487631, 1.0), abs=1e-6)


def test_leaderboard_ranks_by_mean_return_and_equals_share_a_rank(ada: Agent) -> None:
    loser, idle, idle_too = (AgentFactory(cohort=ada.cohort) for _ in range(3))
    lose(loser, "100.00")
    rows = trading_leaderboard().entries
    assert [(row["rank"], row["family"]) for row in rows] == [
        (1, ada.family.slug),
        *sorted((2, agent.family.slug) for agent in (idle, idle_too)),
        (4, loser.family.slug),
    ]


def test_ranks_are_open_after_few_cohorts_and_settled_when_one_family_leads_in_three(ada: Agent) -> None:
    """30 % against 0 once says nothing, nor do two cohorts; three ahead by 16 to 30 % tell them apart."""
    idle = AgentFactory(cohort=ada.cohort)
    track(ada, idle)

    def ranks() -> dict[str, tuple[int, int]]:
        return {row["family"]: (row["rank_low"], row["rank_high"]) for row in trading_leaderboard().entries}

    assert ranks() == {ada.family.slug: (1, 2), idle.family.slug: (1, 2)}
    for amount in ("1250.00", "1100.00"):
        assert ranks() == {ada.family.slug: (1, 2), idle.family.slug: (1, 2)}
        later = again(ada)
        track(later, AgentFactory(cohort=later.cohort, family=idle.family))
        market = MarketFactory()
        bet(later, market, "YES", amount)
        resolve(market, "YES")
    assert ranks() == {ada.family.slug: (1, 1), idle.family.slug: (2, 2)}


def test_family_without_a_resolved_bet_has_no_score_and_still_a_return() -> None:
    agent = AgentFactory()
    bet(agent, amount="500.00")
    row = entry(agent.family)
    scores = ("brier", "brier_ci", "bss_random", "bss_market", "win_rate", "win_rate_ci")
    assert [row[key] for key in scores] == [None] * 6
    assert (row["resolved_bets"], row["resolved_events"]) == (0, 0)
    assert row["return_percent"] == 0.0


def test_open_position_counts_at_its_mark() -> None:
    agent = AgentFactory()
    trade = bet(agent, amount="500.00")  # 1,250 shares at 0.40
    trade.outcome.price = Decimal("0.4333333333")
    trade.outcome.save()
    assert valuations([agent])[agent.pk].total == Decimal("10041.67")
    assert Decimal(entry(agent.family)["total_value"]) == Decimal("10041.67")


def test_open_position_without_a_price_counts_at_cost_and_never_at_zero() -> None:
    agent = AgentFactory()
    trade = bet(agent, amount="500.00")
    type(trade.outcome).objects.filter(pk=trade.outcome_id).update(price=None)
    assert valuations([agent])[agent.pk].total == Decimal("10000.00")


def test_interval_of_the_brier_draws_whole_events() -> None:
    """The same event bet on in two cohorts is one cluster; with no second event nothing is known of the spread."""
    first = AgentFactory()
    market = MarketFactory(event_id="cup")
    bet(first, market, "YES", "2500.00")
    bet(again(first), market, "NO", "1000.00")
    resolve(market, "YES")
    compute_scores(at=SETTLED)
    assert entry(first.family)["resolved_bets"] == 2
    assert entry(first.family)["brier_ci"] is None


def test_interval_of_the_brier_stays_within_0_and_1_and_has_a_width() -> None:
    """Four sure bets that won score 0 each: mu = .1 and k = 4, the 97.5 % point of Beta(.4, 3.6) is .487631."""
    agent = AgentFactory()
    for _ in range(4):
        bet(again(agent), market := MarketFactory(), "YES", "2500.00")
        resolve(market, "YES")
    compute_scores(at=SETTLED)
    assert entry(agent.family)["brier_ci"] == pytest.approx((0.0, 0.487631), abs=1e-6)


def test_leaderboards_are_stored_per_methodology_and_over_all(ada: Agent) -> None:
    v3 = Methodology.objects.get(version="v2")
    v3.pk, v3.version = None, "v9"
    v3.save()
    AgentFactory(cohort=CohortFactory(methodology=v3), family=ada.family)
    assert refresh_trading_leaderboards(at=SETTLED) == 3
    assert {row.methodology: row.entries[0]["cohorts"] for row in Leaderboard.objects.all()} == {
        "": 2, "v2": 1, "v9": 1,
    }  # fmt: skip
    assert entry(ada.family, "v9")["brier"] is None
    assert entry(ada.family, "v2")["brier"] == pytest.approx(0.08)


def test_cost_is_that_of_every_call_malformed_ones_too() -> None:
    decision = DecisionFactory()
    ModelCallFactory(decision=decision, result="malformed", cost_usd=Decimal("0.25"))
    ModelCallFactory(decision=decision, cost_usd=Decimal("0.5"))
    assert entry(decision.agent.family)["cost_usd"] == "0.750000"


def test_sold_bet_still_counts_in_win_rate_and_brier() -> None:
    agent = AgentFactory()
    trade = bet(agent, market := MarketFactory(), "YES", "1250.00")
    sale(trade.position)
    resolve(market, "YES")
    compute_scores(at=SETTLED)
    row = entry(agent.family)
    assert (row["resolved_bets"], row["win_rate"], row["brier"]) == (1, 1.0, pytest.approx(0.25))


def test_leaderboard_costs_the_same_number_of_queries_whatever_was_played(ada: Agent) -> None:
    bet(ada, amount="100.00")
    competition_index()  # who plays is read once for a change, not for a leaderboard
    before = statements(trading_leaderboard)
    for _ in range(4):
        bet(again(ada), amount="100.00")
    competition_index()
    assert statements(trading_leaderboard) == before


def entries(version: str = "") -> Any:
    return Leaderboard.objects.get(methodology=version).entries


def test_a_leaderboard_that_keeps_known_scores_says_the_same_as_one_made_afresh(ada: Agent) -> None:
    """One family has a new score, one a new position, one nothing new."""
    second, idle = again(ada), AgentFactory(cohort=ada.cohort)
    refresh_trading_leaderboards(at=SETTLED)
    lose(second, "1250.00")
    bet(idle, amount="500.00")
    score_trades(at=SETTLED)
    refresh_trading_leaderboards(at=SETTLED)
    computed = compute_trading_leaderboards()
    assert {key.methodology for key in computed} == {"", "v2"}
    assert all(entries(key.methodology) == to_json(contents.entries) for key, contents in computed.items())
    assert next(row for row in entries() if row["family"] == ada.family.slug)["resolved_bets"] == 3


def test_scores_are_read_anew_by_each_refresh(ada: Agent) -> None:
    leaderboard = Leaderboard.objects.get(methodology="")
    leaderboard.entries[0]["brier"] = 0.5
    leaderboard.save()
    refresh_trading_leaderboards(at=SETTLED)
    assert entries()[0]["brier"] == pytest.approx(0.08)
    lose(again(ada), "1250.00")
    compute_scores(at=SETTLED)
    assert entries()[0]["brier"] == pytest.approx((0 + 0.16 + 0.25) / 3)


def test_repaired_score_is_read_although_there_are_as_many(ada: Agent) -> None:
    BrierScore.objects.filter(score__gt=0).update(score=0.5)
    store_leaderboards(compute_trading_leaderboards(), at=SETTLED)
    assert entries()[0]["brier"] == pytest.approx((0 + 0.5) / 2)
    assert len(list(brier_score_drift(at=SETTLED, repair=True))) == 1
    refresh_trading_leaderboards(at=SETTLED)
    assert entries()[0]["brier"] == pytest.approx(0.08)


def test_reversed_outcome_is_read_although_there_are_as_many_scores(ada: Agent) -> None:
    market = Market.objects.get(trades__amount="2500.00")
    reverse_to(market, "NO", at=SETTLED)
    clear_scores(market, [])
    score_trades(at=SETTLED)
    refresh_trading_leaderboards(at=SETTLED)
    leaderboard = Leaderboard.objects.get(methodology="")
    assert leaderboard.entries[0]["brier"] == pytest.approx((1 + 0.16) / 2)
    assert leaderboard.report["calibration"]["families"][ada.family.slug]["murphy"]["brier"] == pytest.approx(0.58)
