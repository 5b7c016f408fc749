"""Sums over published calls: the usage of agents and of families' forecasts, and the cost of families' decisions."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from django.db.models import Count, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from agents.account_errors import KEY_LIMIT
from agents.letters import published
from agents.models import Family, ModelCall

ACCOUNT_REFUSALS = Q(http_status__in=(401, 402)) | Q(error__contains=KEY_LIMIT)
"""Calls in which the gateway refused the account: the model that was asked has no part in it."""
Stated, Booked = ModelCall.CostSource.STATED, ModelCall.CostSource.BOOKED


class Usage(NamedTuple):
    """Requests, tokens and cost of calls; how many costs the gateway stated, and the part that is only booked."""

    requests: int
    tokens_input: int
    tokens_output: int
    cost_usd: Decimal
    stated_costs: int
    unconfirmed_usd: Decimal


NO_USAGE = Usage(0, 0, 0, Decimal(0), 0, Decimal(0))


def usage_of_family(family: Family) -> dict[int | None, Usage]:
    """The usage for each agent's decisions, by the agent's id, and for the family's forecasts, by None."""
    calls = published(ModelCall.objects.all())
    usage: dict[int | None, Usage] = dict(_usage(calls.filter(decision__agent__family=family), "decision__agent"))
    for _, forecast_usage in _usage(calls.filter(elicitation__family=family), "elicitation__family"):
        usage[None] = forecast_usage
    return usage


def decision_costs(methodology: str = "", *, at: datetime | None = None) -> dict[int, Decimal]:
    """The cost of the calls for each family's decisions on the universes of a methodology, by the family's id.

    By when their universe was frozen: calls bear the time of the clock, not the instant that a replay is for.
    """
    calls = published(ModelCall.objects.filter(decision__universe__isnull=False)).order_by()
    if methodology:
        calls = calls.filter(decision__universe__methodology=methodology)
    if at is not None:
        calls = calls.filter(decision__universe__frozen_at__lte=at)
    return dict(calls.values_list("decision__agent__family").annotate(Sum("cost_usd")))


def _usage(calls: QuerySet[ModelCall], by: str) -> Iterator[tuple[int, Usage]]:
    """The ids of a related row, each with the usage of its calls."""
    zero = Value(Decimal(0), output_field=ModelCall._meta.get_field("cost_usd"))
    # Of columns that covering indexes hold: `Count("pk")` would read the calls themselves.
    sums = {
        "calls": Count("*"),
        "tokens_in": Coalesce(Sum("tokens_input"), 0),
        "tokens_out": Coalesce(Sum("tokens_output"), 0),
        "cost": Sum("cost_usd"),
        "stated": Count("cost_source", filter=Q(cost_source=Stated)),
        "unconfirmed": Coalesce(Sum("cost_usd", filter=Q(cost_source=Booked)), zero),
    }
    for pk, *usage in calls.order_by().values_list(by).annotate(**sums):
        yield pk, Usage._make(usage)
