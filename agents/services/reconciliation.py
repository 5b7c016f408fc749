"""Reconciliation: what the gateway billed for the calls that stay booked at their worst case."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction

from agents.gateway.client import Gateway
from agents.gateway.completions import GatewayFailure
from agents.models import CreditReading, Decision, Elicitation, ModelCall, Task
from agents.models.call import RECONCILED
from agents.prices import COST_UNIT
from agents.services.call_totals import add_to_totals, call_usage
from markets.foundation.run_log import FailureLines, ReportLines
from markets.models import Run

ASKED_FOR = timedelta(days=30)
"""How long a booked call is asked about; later it keeps its worst case."""
SETTLED = timedelta(hours=1)
"""After this, no request that was given up is still generated upstream, and the credits hold its bill."""
INACCURACY_USD = Decimal("0.01")
"""Readings that miss more of the stated costs tell nothing: the gateway counts late, or the key's usage was reset."""
RUNS = {Decision: "run_decisions", Elicitation: "run_forecasts"}
Booked = ModelCall.CostSource.BOOKED


@dataclass(slots=True)
class Reconciliation:
    """The number of booked calls that were looked at and corrected, with a line for each correction and failure."""

    checked: int = 0
    corrected: int = 0
    log: ReportLines = field(default_factory=ReportLines)
    failures: FailureLines = field(default_factory=FailureLines)


def reconcile_costs(gateway: Gateway, *, now: datetime) -> Reconciliation:
    """Asks the gateway about each booked call by its generation id, then the credits about those without an answer.

    `now` is the real time, as that of the calls' sending. A call still under way stays booked.
    """
    result = Reconciliation()
    booked = ModelCall.objects.filter(cost_source=Booked, sent_at__gt=now - ASKED_FOR).order_by("pk")
    calls = [call for call in booked.select_related("decision", "elicitation") if not _is_under_way(call, now)]
    result.checked = len(calls)
    try:
        for call in calls:
            billed = gateway.generation(call.generation_id) if call.generation_id else None
            if billed is not None and billed.cost_usd is not None:
                tokens = (billed.tokens_input, billed.tokens_output)
                _correct(call, billed.cost_usd, result, now=now, tokens=tokens)
        _reconcile_with_credits(gateway, result, now=now)
    except GatewayFailure as failure:
        result.failures.append(failure.reason)
    return result


def _is_under_way(call: ModelCall, now: datetime) -> bool:
    task, sent = call.task, call.result == ModelCall.Result.SENT
    return sent and task.status == Task.Status.CLAIMED and task.lease_until is not None and task.lease_until > now


def _reconcile_with_credits(gateway: Gateway, result: Reconciliation, *, now: datetime) -> None:
    """Compares the credits used since the last reading with the calls between; reads them only in quiet hours.

    Calls between two readings of which the gateway stated no cost can not have cost more than the credits leave over.
    Where they do leave as much, as with a key that others use too, the worst case stays booked.
    """
    claimed = {"status": Task.Status.CLAIMED, "lease_until__gt": now}
    busy = any(task.objects.filter(**claimed).exists() for task in (Decision, Elicitation))
    if busy or ModelCall.objects.filter(sent_at__gt=now - SETTLED).exists():
        return
    credits = gateway.credits()
    if credits is None:
        return
    label, used = credits[0], credits[1].quantize(COST_UNIT)
    previous = CreditReading.objects.filter(key_label=label).first()
    calls = list(ModelCall.objects.filter(sent_at__gt=previous.read_at)) if previous else []
    if previous is not None and not calls:
        CreditReading.objects.filter(pk=previous.pk).update(read_at=now, used_usd=used)
        return
    CreditReading.objects.create(read_at=now, key_label=label, used_usd=used)
    booked = [call for call in calls if call.cost_source == Booked]
    worst_case = sum((call.cost_usd for call in booked), Decimal(0))
    confirmed = sum((call.cost_usd for call in calls), -worst_case)
    left = used - previous.used_usd - confirmed if previous else worst_case
    if -INACCURACY_USD <= left < worst_case:
        for call in booked:
            _correct(call, max(left, Decimal(0)) * call.cost_usd / worst_case, result, now=now)


def _correct(
    call: ModelCall,
    cost: Decimal,
    result: Reconciliation,
    *,
    now: datetime,
    tokens: Iterable[int | None] = (None, None),
) -> None:
    """Replaces a booked cost by the one billed, in the call, its totals and its run; once."""
    before, booked = call_usage(call), call.cost_usd
    call.cost_usd, call.cost_source, call.reconciled_at = cost.quantize(COST_UNIT), ModelCall.CostSource.STATED, now
    call.tokens_input, call.tokens_output = tokens
    billed = {name: getattr(call, name) for name in RECONCILED}
    with transaction.atomic():
        if not ModelCall.objects.filter(pk=call.pk, cost_source=Booked).update(**billed):
            return
        add_to_totals(call, before=before)
        _correct_run(call, call.cost_usd - booked)
    result.corrected += 1
    result.log.append(f"{call}: booked ${booked:f}, billed ${call.cost_usd:f}")


def _correct_run(call: ModelCall, change: Decimal) -> None:
    """Corrects the summary of the run that made the call, where only one run was under way then."""
    runs = Run.objects.filter(kind=RUNS[type(call.task)], started_at__lte=call.sent_at, finished_at__gte=call.sent_at)
    if len(candidates := list(runs[:2])) == 1 and "cost_usd" in candidates[0].summary:
        cost = Decimal(candidates[0].summary["cost_usd"]) + change
        runs.filter(pk=candidates[0].pk).update(summary=candidates[0].summary | {"cost_usd": f"{cost:.6f}"})
