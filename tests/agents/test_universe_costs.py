"""The cost of a universe's decisions is always the sum of their calls."""

from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import transaction
from django.db.models import Sum

from agents.models import Family, ModelCall, UniverseCost
from agents.services.costs import add_call_cost, universe_cost_drift
from tests.factories import AgentFactory, DecisionFactory, ModelCallFactory, QuestionFactory, ask

pytestmark = pytest.mark.django_db


@pytest.fixture
def call() -> ModelCall:
    """A family's unanswered call; the family has three others for two decisions on the universe."""
    family = Family.objects.get(slug="grok-4")
    first = DecisionFactory(agent=AgentFactory(family=family))
    second = DecisionFactory(agent=AgentFactory(family=family), universe=first.universe)
    for decision in (first, second, second, DecisionFactory(week=2, agent=first.agent)):
        ModelCallFactory(decision=decision)
    ModelCallFactory(decision=DecisionFactory(agent=AgentFactory(), week=2), cost_usd=Decimal("0.000000000001"))
    sent: ModelCall = ModelCallFactory(decision=first, result=ModelCall.Result.SENT, cost_usd=0)
    return sent


def summed() -> dict[Any, Decimal]:
    calls = ModelCall.objects.filter(decision__universe__isnull=False, cost_usd__gt=0).order_by()
    rows = calls.values_list("decision__universe", "decision__agent__family").annotate(Sum("cost_usd"))
    return {(universe, family): cost for universe, family, cost in rows}


def stored() -> dict[Any, Decimal]:
    rows = UniverseCost.objects.filter(cost_usd__gt=0)
    return {(row.universe_id, row.family_id): row.cost_usd for row in rows}


def test_answer_adds_its_cost(call: ModelCall) -> None:
    before = stored()
    assert before == summed()
    assert len(before) == 3
    call.result, call.cost_usd = ModelCall.Result.ANSWERED, Decimal("0.123456789012")
    with transaction.atomic():
        call.save()
        add_call_cost(call, call.cost_usd)
    key = (call.decision.universe_id, call.decision.agent.family_id)  # type: ignore[union-attr]
    assert stored() == summed() == before | {key: before[key] + Decimal("0.123456789012")}


def test_first_call_of_a_universe_makes_its_row(call: ModelCall) -> None:
    before = stored()
    ModelCallFactory(decision=DecisionFactory(agent=AgentFactory(), week=7), cost_usd=Decimal("1.5"))
    assert stored() == summed()
    assert len(stored()) == len(before) + 1


def test_calls_without_a_universe_count_nowhere(call: ModelCall) -> None:
    before = stored()
    ask(QuestionFactory(), {"grok-4": (0.5, 0.5)})
    ModelCallFactory(decision=DecisionFactory(agent=AgentFactory(), universe=None))
    assert stored() == summed() == before


def test_wrong_cost_is_named_and_repaired(call: ModelCall) -> None:
    due = summed()
    UniverseCost.objects.update(cost_usd=7)
    lines = list(universe_cost_drift())
    assert len(lines) == len(due)
    assert all("is 7" in line for line in lines)
    list(universe_cost_drift(repair=True))
    assert stored() == due
    assert list(universe_cost_drift()) == []


def test_migrating_keeps_costs(call: ModelCall) -> None:
    before = set(UniverseCost.objects.values_list("pk", flat=True))
    call_command("migrate", verbosity=0)
    assert set(UniverseCost.objects.values_list("pk", flat=True)) == before != set()
