"""Reconciliation: what the gateway billed for the calls that stay booked at their worst case."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from agents.gateway.client import Gateway
from agents.gateway.completions import GatewayFailure
from agents.models import CreditReading, Decision, Elicitation, ModelCall, Task
from agents.models.call import RECONCILED
from agents.prices import COST_UNIT
from agents.services.model_calls import CallSettings
from agents.services.spending import week_spending
from cohorts.weeks import week_start
from foundation.models import Run
from foundation.run_log import FailureLines, ReportLines

ASKED_FOR = timedelta(days=30)
"""How long a booked call is asked about; later it keeps its worst case."""
SETTLED = timedelta(minutes=30)
"""After this, twice a request's time limit, none that was given up is still generated: the credits hold its bill."""
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
    calls = _booked_calls(now)
    result.checked = len(calls)
    try:
        for call in calls:
            billed = gateway.generation(call.generation_id) if call.generation_id else None
            if billed is not None and billed.cost_usd is not None:
                tokens = (billed.tokens_input, billed.tokens_output)
                _correct(call, billed.cost_usd, result, now=now, tokens=tokens)
        reading = _take_reading(gateway)
        if reading is not None:
            _reconcile_with_credits(reading, result, now=now)
    except GatewayFailure as failure:
        result.failures.write(failure.reason)
    return result


def prepare_run(settings: CallSettings, protocol: str, *, at: datetime) -> Sequence[str]:
    """Reads the credits before a run's first call; at the spend limit, first releases what was booked and not billed.

    Returns a line for each correction. A gateway that does not answer is the run's own failure, not this one's.
    """
    if week_spending(protocol, week_start(at), default_cap=settings.spend_limit).is_reached:
        return reconcile_costs(settings.gateway, now=timezone.now()).log
    if settings.gateway.has_key:
        with suppress(GatewayFailure):
            _take_reading(settings.gateway)
    return []


def _booked_calls(now: datetime) -> list[ModelCall]:
    booked = ModelCall.objects.filter(cost_source=Booked, sent_at__gt=now - ASKED_FOR).order_by("pk")
    calls = booked.defer("raw_response", "content").select_related("decision", "elicitation")
    return [call for call in calls if not _is_under_way(call, now)]


def _is_under_way(call: ModelCall, now: datetime) -> bool:
    task, is_sent = call.task, call.result == ModelCall.Result.SENT
    return is_sent and task.status == Task.Status.CLAIMED and task.lease_until is not None and task.lease_until > now


def _take_reading(gateway: Gateway) -> CreditReading | None:
    """The key's usage now, stored; None where the gateway does not tell it.

    Without a call since the previous reading it takes that one's place.
    """
    credits = gateway.credits()
    if credits is None:
        return None
    label, usage = credits[0], credits[1].quantize(COST_UNIT)
    previous = CreditReading.objects.filter(key_label=label).first()
    read_at = timezone.now()  # a call sent meanwhile may be in the figure, so that this reading is not before it
    if previous is None or ModelCall.objects.filter(sent_at__gte=previous.read_at).exists():
        return CreditReading.objects.create(read_at=read_at, key_label=label, used_usd=usage)
    previous.read_at, previous.used_usd = read_at, usage
    previous.save(update_fields=["read_at", "used_usd"])
    return previous


def _reconcile_with_credits(reading: CreditReading, result: Reconciliation, *, now: datetime) -> None:
    """Compares the credits used since a reading before each booked call with the calls since, the newest reading first.

    Calls of which the gateway stated no cost can not have cost more than the credits leave over. Where these leave as
    much as the worst case, as with a key that others use too, it stays booked. A call that was sent a moment ago is
    left to a later reading: whether its bill is in the credits yet can not be known.
    """
    settled = now - SETTLED
    bases = {_reading_before(call, reading.key_label) for call in _booked_calls(now) if call.sent_at <= settled}
    for read_at, usage in sorted((base for base in bases if base is not None), reverse=True):
        booked = [call for call in _booked_calls(now) if read_at <= call.sent_at <= settled]
        worst_case = sum((call.cost_usd for call in booked), Decimal(0))
        calls = ModelCall.objects.filter(sent_at__gte=read_at, sent_at__lte=settled).exclude(cost_source=Booked)
        confirmed = calls.aggregate(sum=Sum("cost_usd"))["sum"] or Decimal(0)
        remainder = reading.used_usd - usage - confirmed
        if -INACCURACY_USD <= remainder < worst_case:
            for call in booked:
                _correct(call, max(remainder, Decimal(0)) * call.cost_usd / worst_case, result, now=now)


def _reading_before(call: ModelCall, label: str) -> tuple[datetime, Decimal] | None:
    """The time and the usage of the last reading before a call; None if it was of another key.

    Before the first reading of all, the usage counts from the key's creation.
    """
    earlier = CreditReading.objects.filter(read_at__lte=call.sent_at).first()
    if earlier is None:
        return datetime.min.replace(tzinfo=UTC), Decimal(0)
    return (earlier.read_at, earlier.used_usd) if earlier.key_label == label else None


def _correct(
    call: ModelCall,
    cost: Decimal,
    result: Reconciliation,
    *,
    now: datetime,
    tokens: Iterable[int | None] = (None, None),
) -> None:
    """Replaces a booked cost by the one billed, in the call and its run; once."""
    booked = call.cost_usd
    call.cost_usd, call.cost_source, call.reconciled_at = cost.quantize(COST_UNIT), ModelCall.CostSource.STATED, now
    call.tokens_input, call.tokens_output = tokens
    billed = {name: getattr(call, name) for name in RECONCILED}
    with transaction.atomic():
        if not ModelCall.objects.filter(pk=call.pk, cost_source=Booked).update(**billed):
            return
        _correct_run(call, booked=booked, billed=call.cost_usd)
    result.corrected += 1
    result.log.write(f"{call}: booked ${booked:f}, billed ${call.cost_usd:f}")


def _correct_run(call: ModelCall, *, booked: Decimal, billed: Decimal) -> None:
    """Corrects the summary of the run that made the call, where only one run was under way then."""
    runs = Run.objects.filter(kind=RUNS[type(call.task)], started_at__lte=call.sent_at, finished_at__gte=call.sent_at)
    if len(candidates := list(runs[:2])) == 1 and "cost_usd" in candidates[0].summary:
        summary = candidates[0].summary
        figures = {"cost_usd": Decimal(summary["cost_usd"]) + billed - booked}
        if "booked_usd" in summary:
            figures["booked_usd"] = Decimal(summary["booked_usd"]) - booked
        runs.filter(pk=candidates[0].pk).update(summary=summary | {name: f"{usd:.6f}" for name, usd in figures.items()})
