"""The usage of an agent and of a family's forecasts, and the cost of a family's decisions: sums over their calls."""

from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Sum
from django.utils import timezone

from agents.models import Elicitation, Family, ModelCall
from agents.services.answer_storage import _write_call
from agents.services.call_usage import Usage, decision_costs, usage_of_family
from agents.services.reconciliation import Reconciliation, _correct
from tests.factories import AgentFactory, DecisionFactory, ModelCallFactory, QuestionFactory, ask

pytestmark = pytest.mark.django_db


def test_cost_of_decisions_is_that_of_their_universes_until_an_instant() -> None:
    family = Family.objects.get(slug="grok-4")
    first = DecisionFactory(agent=AgentFactory(family=family))
    second = DecisionFactory(agent=AgentFactory(family=family), universe=first.universe)
    later = DecisionFactory(week=2, agent=first.agent)
    for decision in (first, second, second, later, DecisionFactory(agent=AgentFactory(family=family), universe=None)):
        ModelCallFactory(decision=decision, cost_usd=Decimal("0.5"))
    ask(QuestionFactory(), {"grok-4": (0.5, 0.5)})
    assert decision_costs() == decision_costs(first.universe.methodology) == {family.pk: 2}
    assert decision_costs(at=first.universe.frozen_at) == {family.pk: Decimal("1.5")}
    assert decision_costs("v0") == {}


def test_usage_of_an_agent_tells_what_is_booked_and_what_is_stated() -> None:
    booked: ModelCall = ModelCallFactory(
        tokens_input=None, tokens_output=None, cost_usd="0.5", booked_usd=Decimal("0.5"), cost_source="booked"
    )
    ModelCallFactory(decision=booked.decision, tokens_input=70, tokens_output=7, cost_usd="0.25", cost_source="stated")
    assert booked.decision is not None
    agent = booked.decision.agent
    assert usage_of_family(agent.family) == {agent.pk: Usage(2, 70, 7, Decimal("0.75"), 1, Decimal("0.5"))}


def test_usage_for_forecasts_is_that_of_a_family() -> None:
    ask(QuestionFactory(), {"grok-4": (0.5, 0.5), "gpt-5.1": (0.4, 0.6)})
    ask(QuestionFactory(), {"grok-4": (0.9, 0.1)})
    family = Family.objects.get(slug="grok-4")
    calls = ModelCall.objects.filter(elicitation__in=Elicitation.objects.filter(family=family))
    cost = calls.aggregate(Sum("cost_usd"))["cost_usd__sum"]
    assert usage_of_family(family) == {None: Usage(2, 2000, 400, cost, 0, Decimal(0))}


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_answer_beside_the_reconciliation_of_its_call_has_one_cost() -> None:
    booked: Any = {"cost_source": "booked", "cost_usd": Decimal("0.5"), "booked_usd": Decimal("0.5")}
    call: ModelCall = ModelCallFactory(result="sent", tokens_input=None, tokens_output=None, **booked)

    def reconcile() -> None:
        try:
            _correct(ModelCall.objects.get(pk=call.pk), Decimal("0.2"), Reconciliation(), now=timezone.now())
        finally:
            connection.close()

    thread = Thread(target=reconcile)

    def begin_reconciliation(execute: Any, sql: str, *arguments: Any) -> Any:
        """Begins it after the first statement that reads the call in a transaction, for which it then waits."""
        result = execute(sql, *arguments)
        if 'FROM "agents_modelcall"' in sql and connection.in_atomic_block and thread.ident is None:
            thread.start()
            thread.join(0.5)
        return result

    call.result, call.cost_source, call.cost_usd = ModelCall.Result.ANSWERED, "stated", Decimal("0.1")
    with connection.execute_wrapper(begin_reconciliation), transaction.atomic():
        assert _write_call(call)
    thread.join(20)
    stored_call = ModelCall.objects.get()
    assert (stored_call.cost_usd, stored_call.cost_source) == (Decimal("0.1"), "stated")
