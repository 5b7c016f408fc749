"""Sums over model calls: the usage of each agent and of each family's forecasts, and the cost of each universe.

The service that stores a call adds to them what the call changes, in the same transaction.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from operator import sub
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, F, Model, Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce

from agents.models import Decision, Elicitation, Family, ModelCall, UniverseCost, UsageTotal
from agents.models.sealed_rows import seals_in_force
from agents.models.spending import NO_USAGE, Usage
from foundation.locks import lock_rows

Key = tuple[int | None, ...]
"""The ids of the rows that a total belongs to."""
Sums = tuple[Any, ...]
"""The values of a total, each a sum over calls."""
Stated, Booked = ModelCall.CostSource.STATED, ModelCall.CostSource.BOOKED


def call_usage(call: ModelCall) -> Usage:
    """The usage of one call."""
    return Usage(
        requests=1,
        tokens_input=call.tokens_input or 0,
        tokens_output=call.tokens_output or 0,
        cost_usd=call.cost_usd,
        stated_costs=int(call.cost_source == Stated),
        unconfirmed_usd=call.cost_usd if call.cost_source == Booked else Decimal(0),
    )


def add_to_totals(call: ModelCall, *, before: Usage = NO_USAGE) -> None:
    """Adds to a call's totals what its usage changed by; to be called in the transaction that stores the change."""
    change = Usage._make(map(sub, call_usage(call), before))
    if change == NO_USAGE:
        return
    universe = agent = None
    if call.decision_id is not None:
        columns = ("universe", "agent", "agent__family")
        universe, agent, family = Decision.objects.values_list(*columns).get(pk=call.decision_id)
    else:
        assert call.elicitation_id is not None, "a call belongs to one task"
        family = Elicitation.objects.values_list("family", flat=True).get(pk=call.elicitation_id)
    if universe is not None and change.cost_usd:
        _increase(UniverseCost, {"universe": universe, "family": family}, {"cost_usd": change.cost_usd})
    _increase(UsageTotal, {"agent": agent, "family": family if agent is None else None}, change._asdict())


def usage_of_family(family: Family) -> dict[int | None, Usage]:
    """The usage for each agent's decisions, by the agent's id, and for the family's forecasts, by None."""
    if seals_in_force():  # totals hold sealed calls too
        usage: dict[int | None, Usage] = dict(
            _usage(ModelCall.objects.filter(decision__agent__family=family), "decision__agent")
        )
        for _, forecast_usage in _usage(ModelCall.objects.filter(elicitation__family=family), "elicitation__family"):
            usage[None] = forecast_usage
        return usage
    totals = UsageTotal.objects.filter(Q(agent__family=family) | Q(family=family)).order_by()
    return {agent: Usage._make(sums) for agent, *sums in totals.values_list("agent", *Usage._fields)}


def _increase(model: Any, key: Mapping[str, int | None], changes: Mapping[str, Any]) -> None:
    """Adds the changes to the row with this key, which begins with zeros."""
    row = model._default_manager.filter(**key)
    increased = {}
    for name, change in changes.items():
        increased[name] = F(name) + Value(change, output_field=model._meta.get_field(name))
    if not row.update(**increased):
        _create_with_zeros(model, key, changes)
        row.update(**increased)


def _create_with_zeros(model: Any, key: Mapping[str, int | None], names: Iterable[str]) -> None:
    """Creates a row, unless another transaction does so at the same time."""
    ids = {f"{name}_id": pk for name, pk in key.items()}
    model._default_manager.bulk_create([model(**ids, **dict.fromkeys(names, 0))], ignore_conflicts=True)


# ── verification ──────────────────────────────────────────────────────────────────────────────────


def universe_cost_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each cost that is not the sum of its calls; with `repair`, it becomes that."""
    names = ("universe", "family")
    for drift in _drift(UniverseCost, names, ("cost_usd",), _universe_costs, repair):
        universe, family = drift.key
        stored, computed = _plain(drift.stored[0]), _plain(drift.computed[0])
        yield f"cost of family {family} on universe {universe} is {stored}, its calls make {computed}"


def usage_total_drift(*, repair: bool = False) -> Iterator[str]:
    """A line for each usage that is not the sum of its calls; with `repair`, it becomes that."""
    for drift in _drift(UsageTotal, ("agent", "family"), Usage._fields, _usage_totals, repair):
        agent, family = drift.key
        owner = f"forecasts of family {family}" if agent is None else f"agent {agent}"
        stored, computed = [], []
        for name, stored_sum, computed_sum in zip(Usage._fields, drift.stored, drift.computed, strict=True):
            if stored_sum != computed_sum:
                stored.append(f"{name} {_plain(stored_sum)}")
                computed.append(f"{name} {_plain(computed_sum)}")
        yield f"usage of {owner} is {', '.join(stored)}, its calls make {', '.join(computed)}"


def _plain(number: int | Decimal) -> str:
    return f"{Decimal(number).normalize():f}"


class _Drift(NamedTuple):
    """A row whose stored sums are not those computed from its calls."""

    key: Key
    stored: Sums
    computed: Sums


def _drift(
    model: type[Model],
    key_names: Sequence[str],
    names: Sequence[str],
    summed: Callable[[Key | None], dict[Key, Sums]],
    repair: bool,
) -> Iterator[_Drift]:
    """Each row that is not what `summed` gives; a missing row is as good as zeros.

    Without `repair` it only reads, since a verification reads one state, which it must not lock.
    """
    rows = model._default_manager.order_by().values_list(*key_names, *names)
    stored: dict[Key, Sums] = {row[: len(key_names)]: row[len(key_names) :] for row in rows}
    sums, zeros = summed(None), (Decimal(0),) * len(names)
    wrong = {key for key in stored.keys() | sums.keys() if stored.get(key, zeros) != sums.get(key, zeros)}
    for key in sorted(wrong, key=lambda ids: [pk or 0 for pk in ids]):
        drift = _Drift(key, stored.get(key, zeros), sums.get(key, zeros))
        if repair:
            with transaction.atomic():
                by_name = dict(zip(key_names, key, strict=True))
                row = model._default_manager.filter(**by_name)
                _create_with_zeros(model, by_name, names)  # where there is no row, nothing can be locked
                lock_rows(row)  # a call that is stored meanwhile now waits, or is in both sums
                drift = _Drift(key, row.values_list(*names).get(), summed(key).get(key, zeros))
                row.update(**dict(zip(names, drift.computed, strict=True)))
            if drift.stored == drift.computed:
                continue
        yield drift


def _universe_costs(key: Key | None) -> dict[Key, Sums]:
    """The costs by universe and family, or that of one key."""
    calls = ModelCall.objects.filter(decision__universe__isnull=False).order_by()
    if key is not None:
        calls = calls.filter(decision__universe=key[0], decision__agent__family=key[1])
    rows = calls.values_list("decision__universe", "decision__agent__family").annotate(Sum("cost_usd"))
    return {(universe, family): (cost,) for universe, family, cost in rows}


def _usage_totals(key: Key | None) -> dict[Key, Sums]:
    """The usage by agent and by family, or that of one key."""
    for_decisions = ModelCall.objects.filter(decision__isnull=False)
    for_forecasts = ModelCall.objects.filter(elicitation__isnull=False)
    if key is not None:
        agent, family = key  # one of them is None, of which there are no calls
        for_decisions = for_decisions.filter(decision__agent=agent)
        for_forecasts = for_forecasts.filter(elicitation__family=family)
    sums: dict[Key, Sums] = {}
    for pk, usage in _usage(for_decisions, "decision__agent"):
        sums[pk, None] = usage
    for pk, usage in _usage(for_forecasts, "elicitation__family"):
        sums[None, pk] = usage
    return sums


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
