"""Instructions are checked against the methodology of the agent's cohort, and each refusal names its own figures."""

from datetime import timedelta
from decimal import Decimal

import pytest

from agents.services import ledger
from agents.services.execution import judge_answer
from arena_verifier.decisions import Answer, Bet, Sell
from cohorts.models import Methodology
from markets.models import Market
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    UniverseFactory,
    bet,
)

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("fraction", "percent", "maximum"), [("0.10", "10 %", "1000.00"), ("0.1250", "12.5 %", "1250.00")]
)
def test_refused_bet_names_the_fraction_of_its_own_methodology(fraction: str, percent: str, maximum: str) -> None:
    methodology = Methodology.objects.get(version="v1")
    methodology.pk, methodology.version = None, "v9"
    methodology.maximum_bet_fraction = Decimal(fraction)
    methodology.published_at = WEEK + timedelta(weeks=52)
    methodology.save()
    agent = AgentFactory(cohort=CohortFactory(methodology=methodology))
    market = MarketFactory()
    decision = DecisionFactory(agent=agent, universe__methodology="v9")
    bets = (Bet(str(market.pk), "YES", Decimal("1300")),)
    agent = ledger.lock_agent(agent.pk)
    (verdict,) = judge_answer(Answer("BET", bets=bets), agent=agent, universe=decision.universe)
    assert verdict.reason == (
        f"bets[0].amount: 1300 is above the maximum of {maximum} ({percent} of the cash of 10000.00 at that moment)"
    )


STATES = {
    # what was so at the freeze, and of the market now: the reason
    "paused": (True, {"accepts_orders": False}, "takes no orders for now"),
    "paused at the freeze": (False, {}, "took no orders at the freeze"),
    "closed": (True, {"status": "closed", "closed_at": WEEK}, "is closed and awaits its resolution"),
    "cancelled": (True, {"status": "cancelled", "closed_at": WEEK, "resolved_at": WEEK}, "is cancelled"),
}


@pytest.mark.parametrize("name", STATES)
def test_refusal_says_what_is_so_of_the_market(name: str) -> None:
    was_open, now, reason = STATES[name]
    market = MarketFactory()
    decision = DecisionFactory(agent=AgentFactory(), universe=UniverseFactory(markets=[market], listed_open=was_open))
    position = bet(decision.agent, market, week=2).position
    Market.objects.update(**now)
    agent = ledger.lock_agent(decision.agent_id)
    answer = Answer("SELL", sells=(Sell(str(position.pk), Decimal(100)),))
    (verdict,) = judge_answer(answer, agent=agent, universe=decision.universe)
    assert verdict.reason == f"sells[0].position_id: market {market.pk} {reason}"
