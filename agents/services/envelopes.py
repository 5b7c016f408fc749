"""Envelopes: sealing a judged answer, and opening it once its seal has ended.

Until it is opened an answer has no effect: its agent's account stands still, since nothing of its universe is settled.
An envelope is claimed, carried out and linked a second time in one transaction, so that it is opened exactly once
however often and by however many processes this is tried.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.apps import decisions_recorded
from agents.models import Agent, Decision, Elicitation, Envelope, ModelCall, Position, Task
from agents.records import record_sha256
from agents.services import ledger
from agents.services.chain import append_envelope, append_to_chain
from agents.services.claims import Claim
from agents.services.samples import record_sampled_forecasts
from agents.services.task_records import envelope_record
from agents.services.verdicts import DecisionVerdict, ForecastVerdict
from foundation.failpoints import failpoint
from foundation.run_log import FailureLines, ReportLines
from markets.models import Market, UniverseEntry

log = logging.getLogger(__name__)
State = Envelope.State
SEALED_MARKET = "Answers that may trade it are sealed: nothing is paid on it before they are opened."
AnyTask = TypeVar("AnyTask", bound=Task)


@dataclass(slots=True)
class OpeningReport:
    """The counts of an opening. `failures` names the envelopes that could not be opened."""

    opened: int = 0
    trades: int = 0
    forecasts: int = 0
    failed: int = 0
    log: ReportLines = field(default_factory=ReportLines)
    failures: FailureLines = field(default_factory=FailureLines)


class AnswerWaits(Exception):
    """A market waits for answers that are sealed."""


def seal_answer(claim: Claim[AnyTask], call: ModelCall, verdict: dict[str, Any], at: datetime) -> AnyTask:
    """The claimed task, answered: its verdict is in an envelope, whose hash is in the chain. Raises ClaimLost."""
    with transaction.atomic():
        store_envelope(claim.task, call, verdict, at)
        failpoint("envelope.stored")
        return claim.finish(status=Task.Status.ANSWERED, error="")


def store_envelope(task: Task, call: ModelCall, verdict: dict[str, Any], at: datetime) -> Envelope:
    """The sealed envelope of an answer, the next one of its task."""
    assert task.seal_end is not None
    kind = str(task._meta.model_name)
    envelope = Envelope(
        **{kind: task},
        number=Envelope.objects.filter(**{kind: task}).count() + 1,
        call=call,
        verdict=verdict,
        received_at=at,
        sealed_until=task.seal_end,
    )
    envelope.sha256 = record_sha256(envelope_record(envelope))
    envelope.save(force_insert=True)
    append_envelope(envelope)
    return envelope


def open_envelopes(*, at: datetime) -> OpeningReport:
    """Opens every envelope whose seal has ended by `at`. One that can not be opened leaves the others alone."""
    report = OpeningReport()
    for pk in list(due_envelopes(at).order_by("pk").values_list("pk", flat=True)):
        try:
            envelope = _open(pk, at)
        except Exception as error:
            log.exception("an envelope can not be opened", extra={"envelope": pk})
            report.failed += 1
            report.failures.write(f"envelope {pk} can not be opened: {type(error).__name__}: {error}")
            continue
        if envelope is None:
            continue  # another process opened it
        failpoint("envelope.opened")
        report.opened += 1
        report.log.write(f"{envelope}: opened", envelope=envelope.pk)
        if envelope.decision is not None:
            report.trades += envelope.decision.trades.count()
        else:
            report.forecasts += envelope.call.forecasts.count()
    if report.opened:
        report.forecasts += record_sampled_forecasts(at=at)
        decisions_recorded.send(Envelope, at=at)  # boards show trades and costs from now on
    return report


def due_envelopes(at: datetime) -> QuerySet[Envelope]:
    """The sealed envelopes whose seal has ended by an instant."""
    return Envelope.objects.filter(state=State.SEALED, sealed_until__lte=at)


def _open(pk: int, at: datetime) -> Envelope | None:
    """Opens an envelope in one transaction; None if another process did, or its answer was replaced."""
    with transaction.atomic():
        envelope = Envelope.objects.select_related("decision", "elicitation", "call").get(pk=pk)
        agent = None
        if envelope.decision is not None:  # the account before the envelope, as everybody locks them
            agent = ledger.lock_agent(envelope.decision.agent_id)
            at = ledger.following_instant([agent], at)
        sealed = Envelope.objects.filter(pk=pk, state=State.SEALED)
        if not sealed.update(state=State.OPENED, opened_at=at):
            return None
        failpoint("envelope.claimed")
        if envelope.decision is not None and agent is not None:
            _carry_out_decision(envelope, envelope.decision, agent, at)
        else:
            _carry_out_elicitation(envelope, envelope.elicitation)
        failpoint("envelope.carried_out")
    return envelope


def _carry_out_decision(envelope: Envelope, decision: Decision, agent: Agent, at: datetime) -> None:
    verdict = DecisionVerdict.from_json(envelope.verdict)
    verdict.carry_out(decision, envelope.call, agent=agent, at=at)
    _complete(decision, decided_at=envelope.received_at, **verdict.fields)


def _carry_out_elicitation(envelope: Envelope, task: Elicitation | None) -> None:
    assert task is not None, "an envelope is of one task"
    verdict = ForecastVerdict.from_json(envelope.verdict, task)
    verdict.carry_out(task, at=envelope.received_at)
    _complete(task, made_at=envelope.received_at, **verdict.fields)


def _complete(task: Task, **fields: Any) -> None:
    """Completes an answered task and links it to its chain."""
    answered = type(task).objects.filter(pk=task.pk, status=Task.Status.ANSWERED)
    if not answered.update(status=Task.Status.COMPLETED, **fields):
        raise AssertionError(f"{task} is {task.status}, not answered")
    task.refresh_from_db()
    append_to_chain(task)


# ── waiting for the opening ───────────────────────────────────────────────────────────────────────


def answered_decisions(*, beyond: datetime | None = None) -> QuerySet[Decision]:
    """The decisions whose envelope is not opened yet; with `beyond`, those whose seal lasts longer."""
    answered = Decision.objects.filter(status=Task.Status.ANSWERED).order_by()
    return answered if beyond is None else answered.filter(universe__sealed_until__gt=beyond)


def waiting_markets(answered: QuerySet[Decision]) -> Q:
    """The markets that wait for answered decisions: those of their universes, and those that their agents hold."""
    universes, agents = answered.values("universe"), answered.values("agent")
    offered = UniverseEntry.objects.filter(universe__in=universes).order_by().values("market")
    held = Position.objects.filter(agent__in=agents).order_by().values("market")
    return Q(pk__in=offered) | Q(pk__in=held)


def waiting_ids(markets: Iterable[Market], *, beyond: datetime | None = None) -> set[int]:
    """The ids of those of these markets that wait for a sealed answer, as `answered_decisions` selects them."""
    answered = answered_decisions(beyond=beyond)
    if not answered.exists():
        return set()
    ids = [market.pk for market in markets]
    return set(Market.objects.filter(waiting_markets(answered), pk__in=ids).values_list("pk", flat=True))


def require_opened(market: Market) -> None:
    """Raises AnswerWaits if a market waits for a sealed answer."""
    if waiting_ids([market]):
        raise AnswerWaits(SEALED_MARKET)


def unanswered_cohorts() -> Any:
    """The condition that no decision of a cohort waits in an envelope."""
    return ~Exists(answered_decisions().filter(cohort=OuterRef("pk")))
