"""The cost of a call: its worst case from the sending on, until a response or the reconciliation tells the true one.

Each change of a call's cost is added to the cost of its universe and family in the same transaction.
"""

import math
from collections.abc import Iterator
from decimal import Decimal

from django.db import transaction
from django.db.models import F, Sum, Value

from agents.gateway.completions import Accounting
from agents.models import Decision, ModelCall, UniverseCost
from markets.foundation.fields import CostField

CHARACTERS_PER_TOKEN = 2.6
"""Of JSON Lines about markets: 65,831 characters of 500 captured markets are 25,496 tokens (o200k). Prose has 4."""
COST_UNIT = Decimal("0.000000000001")

Prices = tuple[Decimal, Decimal]
"""US dollars per prompt token and per completion token, as frozen with the task."""
Cost = tuple[Decimal, str]
"""US dollars, and the `ModelCall.CostSource` that they are from."""

Key = tuple[int, int]
"""A universe's and a family's id."""


def count_tokens(*texts: str) -> int:
    """The tokens of texts that are mostly JSON Lines; more than prose of the same length has."""
    return math.ceil(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)


def worst_case(system: str, user: str, max_tokens: int, prices: Prices) -> Decimal:
    """The most that a request may cost: its prompt, and every token that it allows for the answer."""
    return token_cost(count_tokens(system, user), max_tokens, prices)


def response_cost(stated: Accounting, prices: Prices, *, billable: bool) -> Cost | None:
    """The cost of a response; None if it tells nothing and may be billed all the same."""
    if stated.cost_usd is not None:
        return stated.cost_usd.quantize(COST_UNIT), ModelCall.CostSource.STATED
    if billable and stated.tokens_input is None and stated.tokens_output is None:
        return None
    return token_cost(stated.tokens_input, stated.tokens_output, prices), ModelCall.CostSource.COMPUTED


def token_cost(tokens_input: int | None, tokens_output: int | None, prices: Prices) -> Decimal:
    return (tokens_input or 0) * prices[0] + (tokens_output or 0) * prices[1]


def add_call_cost(call: ModelCall, change: Decimal) -> None:
    """Adds to the cost of a call's universe what the call's own cost changed by; in the transaction that stores it."""
    if call.decision_id is None or not change:
        return
    universe, family = Decision.objects.values_list("universe", "agent__family").get(pk=call.decision_id)
    if universe is None:
        return
    row = UniverseCost.objects.filter(universe=universe, family=family)
    increased = {"cost_usd": F("cost_usd") + Value(change, output_field=CostField())}
    if not row.update(**increased):
        new = UniverseCost(universe_id=universe, family_id=family, cost_usd=Decimal(0))
        UniverseCost.objects.bulk_create([new], ignore_conflicts=True)
        row.update(**increased)


def universe_cost_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each cost that is not the sum of its calls; with `repair`, it becomes that."""
    rows = UniverseCost.objects.order_by().values_list("universe", "family", "cost_usd")
    stored, summed = {(universe, family): cost for universe, family, cost in rows}, _summed()
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


def _summed(universe: int | None = None, family: int | None = None) -> dict[Key, Decimal]:
    calls = ModelCall.objects.filter(decision__universe__isnull=False).order_by()
    if universe is not None:
        calls = calls.filter(decision__universe=universe, decision__agent__family=family)
    rows = calls.values_list("decision__universe", "decision__agent__family").annotate(Sum("cost_usd"))
    return {(of_universe, of_family): cost for of_universe, of_family, cost in rows}
