"""What runs of either protocol share: what they report, and how one claimed task is seen through to its end."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeVar

from agents.models import Task
from agents.services.asking import Asking
from agents.services.claims import Claim, ClaimLost
from agents.services.conversation import Conversation, converse
from markets.failpoints import reached
from markets.services.marks import Marks

log = logging.getLogger(__name__)
T = TypeVar("T", bound=Task)


@dataclass(slots=True)
class RunReport:
    """What a run did. `failures` holds a line for each task that failed and each upstream that gave nothing."""

    asked: int = 0
    completed: int = 0
    failed: int = 0
    missed: int = 0
    skipped: int = 0
    cost_usd: Decimal = Decimal(0)
    log: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def note_prices(self, marks: Marks) -> None:
        """Takes up what could not be had when prices were frozen."""
        self.log += marks.failures
        self.failures += filter(None, [marks.trouble])


def see_through(
    claim: Claim[T] | None,
    conversation: Callable[[Claim[T]], Conversation[T]],
    *,
    name: str,
    asking: Asking,
    report: RunReport,
) -> T | None:
    """The completed task, counted in `report` under `name`; None where it failed, or could not be claimed or held."""
    if claim is None:
        report.skipped += 1
        return None
    kind = claim.task._meta.model_name
    log.info("claimed", extra=claim.task.about)
    reached(f"{kind}.claimed")
    try:
        task = converse(claim, conversation(claim), asking=asking)
    except ClaimLost as lost:
        report.skipped += 1
        report.log.append(f"{name}: {lost}")
        log.info("lost", extra=claim.task.about | {"reason": str(lost)})
        return None
    finally:
        report.cost_usd += sum(claim.spent)
    report.asked += 1
    reached(f"{kind}.finished")
    if task.status == Task.Status.FAILED:
        report.failed += 1
        report.failures.append(f"{name}: {task.error}")
        log.info("failed", extra=claim.task.about | {"reason": task.error})
        return None
    report.completed += 1
    return task
