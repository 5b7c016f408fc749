"""The cost of a universe, and the usage of an agent and of a family's forecasts, are the sums of their calls."""

from collections.abc import Callable
from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Elicitation, Family, ModelCall, UniverseCost, UsageTotal
from agents.models.spending import Usage
from agents.services.answer_storage import _write_call
from agents.services.call_totals import add_to_totals, call_usage, universe_cost_drift, usage_total_drift
from agents.services.reconciliation import Reconciliation, _correct
from foundation.consistent_reads import consistent_reads
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
    open_call: ModelCall = ModelCallFactory(decision=first, result=ModelCall.Result.SENT, cost_usd=0)
    return open_call


def summed() -> dict[Any, Decimal]:
    calls = ModelCall.objects.filter(decision__universe__isnull=False, cost_usd__gt=0).order_by()
    rows = calls.values_list("decision__universe", "decision__agent__family").annotate(Sum("cost_usd"))
    return {(universe, family): cost for universe, family, cost in rows}


def stored() -> dict[Any, Decimal]:
    rows = UniverseCost.objects.filter(cost_usd__gt=0)
    return {(row.universe_id, row.family_id): row.cost_usd for row in rows}


def usage(**of: Any) -> Usage:
    """The stored usage of an agent or of a family's forecasts."""
    return Usage._make(UsageTotal.objects.values_list(*Usage._fields).get(**of))


def usage_rows() -> set[tuple[Any, ...]]:
    return set(UsageTotal.objects.values_list("agent", "family", *Usage._fields))


def test_answer_adds_its_cost(call: ModelCall) -> None:
    before = stored()
    assert before == summed()
    assert len(before) == 3
    usage = call_usage(call)
    call.result, call.cost_usd = ModelCall.Result.ANSWERED, Decimal("0.123456789012")
    with transaction.atomic():
        call.save()
        add_to_totals(call, before=usage)
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


def test_usage_of_an_agent_follows_its_calls_from_the_booking_to_the_bill() -> None:
    booked: ModelCall = ModelCallFactory(
        tokens_input=None, tokens_output=None, cost_usd="0.5", booked_usd=Decimal("0.5"), cost_source="booked"
    )
    ModelCallFactory(decision=booked.decision, tokens_input=70, tokens_output=7, cost_usd="0.25")
    assert booked.decision is not None
    agent = booked.decision.agent
    assert usage(agent=agent) == Usage(2, 70, 7, Decimal("0.75"), 0, Decimal("0.5"))
    before = call_usage(booked)
    booked.tokens_input, booked.tokens_output, booked.cost_usd, booked.cost_source = 1000, 200, Decimal("0.1"), "stated"
    add_to_totals(booked, before=before)
    assert usage(agent=agent) == Usage(2, 1070, 207, Decimal("0.35"), 1, Decimal(0))
    assert UsageTotal.objects.count() == 1


def test_usage_for_forecasts_is_that_of_a_family() -> None:
    ask(QuestionFactory(), {"grok-4": (0.5, 0.5), "gpt-5.1": (0.4, 0.6)})
    ask(QuestionFactory(), {"grok-4": (0.9, 0.1)})
    family = Family.objects.get(slug="grok-4")
    calls = ModelCall.objects.filter(elicitation__in=Elicitation.objects.filter(family=family))
    cost = calls.aggregate(Sum("cost_usd"))["cost_usd__sum"]
    assert usage(family=family) == Usage(2, 2000, 400, cost, 0, Decimal(0))
    assert UsageTotal.objects.count() == 2


def test_wrong_usage_is_named_and_repaired(call: ModelCall) -> None:
    ask(QuestionFactory(), {"grok-4": (0.5, 0.5)})
    assert list(usage_total_drift()) == []
    assert call.decision is not None
    right = usage_rows()
    agent, family = call.decision.agent_id, Family.objects.get(slug="grok-4").pk
    UsageTotal.objects.filter(agent=agent).update(requests=9, tokens_input=5)
    UsageTotal.objects.filter(agent=None).delete()
    lines = [
        f"usage of forecasts of family {family} is requests 0, tokens_input 0, tokens_output 0, cost_usd 0, "
        "its calls make requests 1, tokens_input 1000, tokens_output 200, cost_usd 0.01",
        f"usage of agent {agent} is requests 9, tokens_input 5, its calls make requests 3, tokens_input 3000",
    ]
    assert list(usage_total_drift()) == lines
    assert list(usage_total_drift(repair=True)) == lines
    assert usage_rows() == right
    assert list(usage_total_drift()) == []


@pytest.mark.django_db(transaction=True)
def test_verification_names_wrong_totals_and_only_reads() -> None:
    ModelCallFactory()
    UniverseCost.objects.update(cost_usd=7)
    UsageTotal.objects.update(requests=9)
    with consistent_reads(), CaptureQueriesContext(connection) as captured:
        assert len([*universe_cost_drift(), *usage_total_drift()]) == 2
    assert {query["sql"].split()[0] for query in captured} == {"SELECT"}


def interrupted(after: str, elsewhere: Callable[[], object]) -> tuple[Any, Thread]:
    """A wrapper of statements that, after the first with this text in a transaction, lets another thread begin."""

    def in_thread() -> None:
        try:
            elsewhere()
        finally:
            connection.close()

    thread = Thread(target=in_thread)

    def wrapper(execute: Any, sql: str, *arguments: Any) -> Any:
        result = execute(sql, *arguments)
        if after in sql and connection.in_atomic_block and thread.ident is None:
            thread.start()
            thread.join(0.5)  # it waits for this transaction, or has done its harm by then
        return result

    return connection.execute_wrapper(wrapper), thread


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_call_that_is_stored_beside_a_repair_counts_once() -> None:
    decision = ModelCallFactory().decision
    UsageTotal.objects.all().delete()

    def store_another() -> None:
        with transaction.atomic():
            ModelCallFactory(decision=decision, sequence=2)

    interruption, thread = interrupted('FROM "agents_modelcall"', store_another)
    with interruption:
        assert len(list(usage_total_drift(repair=True))) == 1
    thread.join(20)
    assert usage(agent=decision.agent).requests == ModelCall.objects.count() == 2


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_answer_beside_the_reconciliation_of_its_call_counts_once() -> None:
    booked: Any = {"cost_source": "booked", "cost_usd": Decimal("0.5"), "booked_usd": Decimal("0.5")}
    call: ModelCall = ModelCallFactory(result="sent", tokens_input=None, tokens_output=None, **booked)

    def reconcile() -> None:
        _correct(ModelCall.objects.get(pk=call.pk), Decimal("0.2"), Reconciliation(), now=timezone.now())

    call.result, call.cost_source, call.cost_usd = ModelCall.Result.ANSWERED, "stated", Decimal("0.1")
    interruption, thread = interrupted('FROM "agents_modelcall"', reconcile)
    with interruption, transaction.atomic():
        assert _write_call(call)
    thread.join(20)
    stored_call = ModelCall.objects.get()
    assert call.decision is not None
    assert usage(agent=call.decision.agent) == call_usage(stored_call)
    assert stored() == {(call.decision.universe_id, call.decision.agent.family_id): stored_call.cost_usd}


def test_wrong_cost_is_named_and_repaired(call: ModelCall) -> None:
    expected = summed()
    UniverseCost.objects.update(cost_usd=7)
    lines = list(universe_cost_drift())
    assert len(lines) == len(expected)
    assert all("is 7" in line for line in lines)
    list(universe_cost_drift(repair=True))
    assert stored() == expected
    assert list(universe_cost_drift()) == []


def test_migrating_keeps_totals(call: ModelCall) -> None:
    def rows() -> list[set[int]]:
        return [set(model.objects.values_list("pk", flat=True)) for model in (UniverseCost, UsageTotal)]

    before = rows()
    call_command("migrate", verbosity=0)
    assert rows() == before
    assert all(before)
