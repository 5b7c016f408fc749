"""What a universe's decisions cost: always the sum of their calls, whoever writes these."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Sum

from agents.models import Family, ModelCall
from scoring.models import UniverseCost
from tests.factories import AgentFactory, DecisionFactory, ModelCallFactory, QuestionFactory, asked
from tests.tampering import lifted

pytestmark = pytest.mark.django_db


@pytest.fixture
def call() -> ModelCall:
    """One of a family's three calls for two decisions on a universe; another family has one on the next."""
    family = Family.objects.get(slug="grok-4")
    first = DecisionFactory(agent=AgentFactory(family=family))
    second = DecisionFactory(agent=AgentFactory(family=family), universe=first.universe)
    for decision in (first, second, second, DecisionFactory(week=2, agent=first.agent)):
        ModelCallFactory(decision=decision)
    ModelCallFactory(decision=DecisionFactory(agent=AgentFactory(), week=2), cost_usd=Decimal("0.000000000001"))
    sent: ModelCall = ModelCallFactory(decision=first, result=ModelCall.Result.SENT, cost_usd=0)
    return sent


def added_up() -> dict[Any, Decimal]:
    calls = ModelCall.objects.filter(decision__universe__isnull=False, cost_usd__gt=0).order_by()
    rows = calls.values_list("decision__universe", "decision__agent__family").annotate(Sum("cost_usd"))
    return {(universe, family): cost for universe, family, cost in rows}


def kept() -> dict[Any, Decimal]:
    rows = UniverseCost.objects.filter(cost_usd__gt=0)
    return {(row.universe_id, row.family_id): row.cost_usd for row in rows}


def changes() -> dict[str, Callable[[ModelCall], Any]]:
    def answered(call: ModelCall) -> None:
        call.result, call.cost_usd = ModelCall.Result.ANSWERED, Decimal("0.123456789012")
        call.save()

    def answered_unlike_first(call: ModelCall) -> None:
        answered(call)
        with lifted(ModelCall), connection.cursor() as cursor:
            cursor.execute("UPDATE agents_modelcall SET cost_usd = cost_usd * 3")

    def written_with_its_cost(call: ModelCall) -> None:
        ModelCallFactory(decision=call.decision, cost_usd=Decimal("1.5"))

    def first_of_a_universe(call: ModelCall) -> None:
        ModelCallFactory(decision=DecisionFactory(agent=AgentFactory(), week=7), cost_usd=Decimal("1.5"))

    def taken_away(call: ModelCall) -> None:
        with lifted(ModelCall):
            ModelCall.objects.filter(decision=call.decision).delete()

    def many_at_once(call: ModelCall) -> None:
        rows = [ModelCallFactory.build(decision=call.decision, sequence=9 + n) for n in range(3)]
        ModelCall.objects.bulk_create(rows, ignore_conflicts=True)

    def taken_back(call: ModelCall) -> None:
        with transaction.atomic():
            answered(call)
            transaction.set_rollback(True)

    def for_no_decision(call: ModelCall) -> None:
        asked(QuestionFactory(), {"grok-4": (0.5, 0.5)})

    def for_no_universe(call: ModelCall) -> None:
        ModelCallFactory(decision=DecisionFactory(agent=AgentFactory(), universe=None))

    return {change.__name__: change for change in (
        answered, answered_unlike_first, written_with_its_cost, first_of_a_universe, taken_away, many_at_once,
        taken_back, for_no_decision, for_no_universe,
    )}  # fmt: skip


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_costs_are_those_of_the_calls_whoever_writes_them(call: ModelCall, change: Callable[[ModelCall], Any]) -> None:
    before = kept()
    assert before == added_up()
    assert len(before) == 3
    change(call)
    assert kept() == added_up()
    assert (kept() == before) == (change.__name__ in ("taken_back", "for_no_decision", "for_no_universe"))


@pytest.mark.django_db(transaction=True)
def test_what_was_written_while_no_trigger_was_there_is_added_up_after_a_migration() -> None:
    ModelCallFactory(cost_usd=Decimal("0.25"))
    UniverseCost.objects.update(cost_usd=7)
    call_command("migrate", "agents", "0001", verbosity=0)
    call_command("migrate", verbosity=0)
    assert kept() == added_up() != {}
