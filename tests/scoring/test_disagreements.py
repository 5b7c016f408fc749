"""The largest disagreements of two families: the most at stake on opposite sides, the widest gaps of forecasts."""

from decimal import Decimal

import pytest

from agents.models import Agent, Family
from markets.models import Market
from scoring.selectors.disagreements import disagreements, position_disagreements
from tests.factories import (
    AgentFactory,
    CohortFactory,
    FamilyFactory,
    MarketFactory,
    QuestionFactory,
    ask,
    bet,
    resolve,
)

pytestmark = pytest.mark.django_db
GPT, GROK, CLAUDE = "gpt-5.1", "grok-4", "claude-opus-4.5"
THREE = (GPT, GROK, CLAUDE)


def family(slug: str) -> Family:
    return Family.objects.get(slug=slug)


@pytest.fixture
def agents() -> dict[str, Agent]:
    """Three families in one cohort, who bought sides of two markets and stated odds on two questions."""
    cohort = CohortFactory()
    agents = {slug: AgentFactory(cohort=cohort, family=family(slug)) for slug in THREE}
    one, second = MarketFactory.create_batch(2)
    for slug, side, amount in ((GPT, "YES", "900.00"), (GROK, "NO", "300.00"), (CLAUDE, "NO", "700.00")):
        bet(agents[slug], one, side, amount)
    bet(agents[GPT], second, "NO", "50.00")
    bet(agents[GROK], second, "YES", "950.00")
    for market, odds in ((one, (0.9, 0.4, 0.45)), (second, (0.2, 0.3, 0.9))):
        vectors = dict(zip(THREE, ([share, 1 - share] for share in odds), strict=True))
        ask(QuestionFactory(markets=[market]), vectors)
    return agents


def test_the_most_at_stake_and_the_widest_gap_come_first(agents: dict[str, Agent]) -> None:
    against, number = position_disagreements(family(GROK), family(GPT))
    assert number == 2
    assert [row[1:5] for row in against] == [
        ("NO", Decimal("300.00"), "YES", Decimal("900.00")),
        ("YES", Decimal("950.00"), "NO", Decimal("50.00")),
    ]
    apart = disagreements(family(GROK), family(GPT), "priced")
    assert [(row.first, row.second) for row in apart] == [(0.4, 0.9), (0.3, 0.2)]


def test_a_bet_shows_at_once(agents: dict[str, Agent]) -> None:
    market = MarketFactory()
    bet(agents[GPT], market, "YES", "10.00")
    bet(agents[GROK], market, "NO", "20.00")
    against, number = position_disagreements(family(GPT), family(GROK))
    assert number == 3
    assert against[-1].market.pk == market.pk


def test_a_forecast_shows_at_once(agents: dict[str, Agent]) -> None:
    question = QuestionFactory()
    ask(question, {GPT: [1.0, 0.0], GROK: [0.0, 1.0]})
    assert disagreements(family(GPT), family(GROK), "priced")[0].question.pk == question.pk


def test_a_resolution_shows_at_once(agents: dict[str, Agent]) -> None:
    against, _ = position_disagreements(family(GPT), family(GROK))
    assert against[0].winner is None
    resolve(Market.objects.get(pk=against[0].market.pk), "NO")
    assert position_disagreements(family(GPT), family(GROK))[0][0].winner == "NO"


def test_external_agents_are_compared_too(agents: dict[str, Agent]) -> None:
    guest = FamilyFactory(external=True, active=False, track="closed")
    market = agents[GPT].trades.earliest("pk").market
    bet(AgentFactory(cohort=agents[GPT].cohort, family=guest), market, "NO", "5.00")
    assert position_disagreements(guest, family(GPT))[1] == 1
