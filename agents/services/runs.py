"""Parts that decision and forecast runs share: the report, and the processing of one claimed task."""

import logging
import math
import time
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

from django.utils import timezone

from agents.gateway.completions import FailureScope
from agents.models import Task
from agents.services.claims import ClaimLost, claim_task, fail_task
from agents.services.conversation import Conversation, converse
from agents.services.gone_releases import raise_gone_alert
from agents.services.model_calls import CallSettings
from agents.services.run_settings import is_paused, maintenance_line
from foundation import draining
from foundation.failpoints import failpoint
from foundation.run_log import FailureLines, ReportLines
from markets.services.prices import PricingResult

log = logging.getLogger(__name__)
AnyTask = TypeVar("AnyTask", bound=Task)


ALL_MODELS = ""
"""The key of a stop that concerns the whole account."""
NOT_COUNTED = ("log", "failures", "start", "stops", "asking_ends_s", "end")
TIME_IS_OVER = "the time of this run is over; the next run goes on"


@dataclass(slots=True)
class RunReport:
    """Counts of a run. `failures` has a line for each failed task and each upstream that gave nothing."""

    asked: int = 0
    completed: int = 0
    failed: int = 0
    missed: int = 0
    skipped: int = 0
    unasked: int = 0
    """Tasks left to a later run, since an earlier failure or another run's claim concerns them too."""
    paused: int = 0
    """Tasks that were left out, since an operator paused their family or protocol."""
    cost_usd: Decimal = Decimal(0)
    booked_usd: Decimal = Decimal(0)
    """The part of the cost that is booked at the worst case, until the gateway tells what it billed."""
    log: ReportLines = field(default_factory=ReportLines)
    failures: FailureLines = field(default_factory=FailureLines)
    start: datetime = field(default_factory=timezone.now)
    """On the real clock."""
    stops: dict[str, str] = field(default_factory=dict)
    """The failure since which nobody (ALL_MODELS), or one model, is asked any more, by its id."""
    end: str = ""
    """Why the run asks nobody any more, though nothing failed."""
    asking_ends_s: float = math.inf
    """When nobody new is asked any more, on the monotonic clock."""

    def summary(self) -> dict[str, Any]:
        """The counts as the commands print them."""
        names = (column.name for column in fields(self) if column.name not in NOT_COUNTED)
        costs = {"cost_usd": f"{self.cost_usd:.6f}", "booked_usd": f"{self.booked_usd:.6f}"}
        return {name: getattr(self, name) for name in names} | costs

    def is_stopped(self, model_id: str, label: str) -> bool:
        """True if this model is not to be asked any more; the task is then counted, and named with the reason."""
        if time.monotonic() >= self.asking_ends_s:
            self.end = self.end or TIME_IS_OVER
        if draining.is_stopping():
            self.end = self.end or draining.STOPPING
        if maintenance := maintenance_line():
            self.end = self.end or maintenance
        if reason := self.failure_of(model_id) or self.end:
            self.unasked += 1
            self.log.write(f"{label}: not asked: {reason}")
        return bool(reason)

    def failure_of(self, model_id: str) -> str:
        """The failure that this model's tasks share with one that failed before; empty without one."""
        return self.stops.get(ALL_MODELS) or self.stops.get(model_id, "")

    def is_paused(self, protocol: str, family_id: int, label: str) -> bool:
        """True if an operator has paused this family or the protocol; the task is then counted and named."""
        paused = is_paused(protocol, family_id)
        if paused:
            self.paused += 1
            self.log.write(f"{label}: not asked: paused by an operator")
        return paused

    def add_price_failures(self, pricing: PricingResult) -> None:
        """Adds the prices that could not be had for a freeze."""
        self.log.write_all(pricing.failures)
        self.failures.write_all(filter(None, [pricing.total_failure]))


def fail_unasked(
    report: RunReport, model: type[AnyTask], *, model_id: str, identity: dict[str, Any], **defaults: Any
) -> None:
    """Stores that a task was due and was not asked for the failure of another: it is nobody's fault more than theirs.

    A task that is final or claimed stays as it is.
    """
    if error := report.failure_of(model_id):
        fail_task(model, identity=identity, error=error, **defaults)


def run_task(
    model: type[AnyTask],
    conversation: Conversation[AnyTask],
    *,
    label: str,
    at: datetime,
    settings: CallSettings,
    report: RunReport,
    **fields: Any,
) -> AnyTask | None:
    """The completed task, counted in `report`; None if it failed, or could not be claimed or kept.

    `fields` are those that `claim_task` takes.
    """
    claim = claim_task(model, lease=settings.lease, run_started=report.start, **fields)
    if claim is None:
        report.skipped += 1
        return None
    kind = str(claim.task._meta.model_name)
    log.info("claimed", extra=claim.task.log_context)
    failpoint(f"{kind}.claimed")
    try:
        task, scope = converse(claim, conversation, at=at, settings=settings)
    except ClaimLost as lost:
        report.skipped += 1
        report.log.write(f"{label}: {lost}", **{kind: claim.task.pk})
        log.info("lost", extra=claim.task.log_context | {"reason": str(lost)})
        return None
    finally:
        report.cost_usd += sum(claim.spent)
        report.booked_usd += sum(claim.booked)
    report.asked += 1
    failpoint(f"{kind}.finished")
    if task.status == Task.Status.FAILED:
        report.failed += 1
        report.failures.write(f"{label}: {task.error}", **{kind: task.pk})
        log.info("failed", extra=claim.task.log_context | {"reason": task.error})
        if scope != FailureScope.REQUEST:
            report.stops[ALL_MODELS if scope == FailureScope.ACCOUNT else task.model_id] = task.error
        if scope == FailureScope.RELEASE:
            raise_gone_alert(task.model_id, task.error, at=at)
        return None
    report.completed += 1
    return task
