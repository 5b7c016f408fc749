"""Parts that decision and forecast runs share: the report, and the processing of one claimed task."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from agents.models import Task
from agents.services.answer_storage import take_spooled_answers
from agents.services.claims import Claim, ClaimLost
from agents.services.conversation import Conversation, converse
from agents.services.model_calls import CallSettings
from markets.foundation.failpoints import failpoint
from markets.services.prices import PricingResult

log = logging.getLogger(__name__)
T = TypeVar("T", bound=Task)


@dataclass(slots=True)
class RunReport:
    """Counts of a run. `failures` has a line for each failed task and each upstream that gave nothing."""

    asked: int = 0
    completed: int = 0
    failed: int = 0
    missed: int = 0
    skipped: int = 0
    cost_usd: Decimal = Decimal(0)
    log: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def store_spooled_answers(self) -> None:
        """Stores answers that workers before this run had to leave in files; none of them is bought again."""
        self.log += take_spooled_answers()

    def add_price_failures(self, pricing: PricingResult) -> None:
        """Adds the prices that could not be had for a freeze."""
        self.log += pricing.failures
        self.failures += filter(None, [pricing.total_failure])


def run_task(
    claim: Claim[T] | None,
    conversation: Callable[[Claim[T]], Conversation[T]],
    *,
    label: str,
    settings: CallSettings,
    report: RunReport,
) -> T | None:
    """The completed task, counted in `report`; None if it failed, or could not be claimed or kept."""
    if claim is None:
        report.skipped += 1
        return None
    kind = claim.task._meta.model_name
    log.info("claimed", extra=claim.task.log_context)
    failpoint(f"{kind}.claimed")
    try:
        task = converse(claim, conversation(claim), settings=settings)
    except ClaimLost as lost:
        report.skipped += 1
        report.log.append(f"{label}: {lost}")
        log.info("lost", extra=claim.task.log_context | {"reason": str(lost)})
        return None
    finally:
        report.cost_usd += sum(claim.spent)
    report.asked += 1
    failpoint(f"{kind}.finished")
    if task.status == Task.Status.FAILED:
        report.failed += 1
        report.failures.append(f"{label}: {task.error}")
        log.info("failed", extra=claim.task.log_context | {"reason": task.error})
        return None
    report.completed += 1
    return task
