"""Costs per universe and family, kept equal to the sums of their calls."""

from collections.abc import Iterator
from decimal import Decimal

from django.db import transaction
from django.db.models import F, Sum, Value

from agents.models import Agent, Decision, ModelCall, UniverseCost
from markets.foundation.fields import CostField

Key = tuple[int, int]
"""A universe's and a family's id."""


def add_call_cost(call: ModelCall, change: Decimal) -> None:
    """Adds to the cost of a call's universe what the call's own cost changed by; in the transaction that stores it."""
    if call.decision_id is None or not change:
        return
    universe, agent = Decision.objects.values_list("universe", "agent").get(pk=call.decision_id)
    if universe is None:
        return
    family = Agent.objects.values_list("family", flat=True).get(pk=agent)
    row = UniverseCost.objects.filter(universe=universe, family=family)
    UniverseCost.objects.bulk_create(
        [UniverseCost(universe_id=universe, family_id=family, cost_usd=Decimal(0))], ignore_conflicts=True
    )
    row.update(cost_usd=F("cost_usd") + Value(change, output_field=CostField()))


def universe_cost_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each cost that is not the sum of its calls; with `repair`, it becomes that."""
    stored, summed = _stored(), _summed()
    for universe, family in sorted(key for key in stored.keys() | summed.keys() if stored.get(key) != summed.get(key)):
        row = UniverseCost.objects.filter(universe=universe, family=family)
        with transaction.atomic():
            row.update(cost_usd=F("cost_usd"))  # a call that is stored meanwhile now waits, or is in both sums
            have = row.values_list("cost_usd", flat=True).first() or Decimal(0)
            due = _summed(universe, family).get((universe, family), Decimal(0))
            if have == due:
                continue
            if repair:
                UniverseCost.objects.update_or_create(
                    universe_id=universe, family_id=family, defaults={"cost_usd": due}
                )
        yield f"cost of family {family} on universe {universe} is {have:f}, its calls make {due:f}"


def _stored() -> dict[Key, Decimal]:
    rows = UniverseCost.objects.order_by().values_list("universe", "family", "cost_usd")
    return {(universe, family): cost for universe, family, cost in rows}


def _summed(universe: int | None = None, family: int | None = None) -> dict[Key, Decimal]:
    calls = ModelCall.objects.filter(decision__universe__isnull=False).order_by()
    if universe is not None:
        calls = calls.filter(decision__universe=universe, decision__agent__family=family)
    rows = calls.values_list("decision__universe", "decision__agent__family").annotate(Sum("cost_usd"))
    return {(of_universe, of_family): cost for of_universe, of_family, cost in rows}
