"""Verification of the register of receipts: it holds the answers that were accepted since it began."""

from collections.abc import Iterator

from agents.models import Receipt, Submission
from agents.records import GENESIS

CREATED = 201


def submissions_without_receipt() -> Iterator[str]:
    """A line for each accepted answer since the first receipt that is not in the register."""
    first = Receipt.objects.order_by("sequence").values_list("submission", flat=True).first()
    if first is None:
        return
    accepted = Submission.objects.filter(status=CREATED, receipt=None, pk__gt=first)
    for pk in accepted.order_by("pk").values_list("pk", flat=True):
        yield f"submission {pk} was accepted and has no receipt"


def receipt_head(length: int) -> str:
    """The hash of the receipt that was the last one of so many; of none that of no chain."""
    return Receipt.objects.filter(sequence=length).values_list("sha256", flat=True).first() or GENESIS


def task_name(submission: Submission) -> str:
    """The name in receipts of the task that a submission answers."""
    decision, elicitation = submission.call.decision, submission.call.elicitation
    if decision is not None:
        return f"agent-{decision.agent_id}-universe-{decision.universe_id}"
    assert elicitation is not None
    return f"batch-{elicitation.batch_id}"
