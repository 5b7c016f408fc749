"""Verification of the register of receipts: its order, hashes, signatures, and the answers that it is about."""

import hashlib
from collections.abc import Iterator

from agents.models import Chain, Receipt, Submission
from agents.records import GENESIS, RECEIPT, record_sha256
from agents.signing import is_signature

CREATED = 201


def verify_receipts() -> Iterator[str]:
    """A line for each violation that names its receipt or submission."""
    length, head = 0, GENESIS
    receipts = Receipt.objects.select_related("key", "submission__registration__family", "submission__call__decision")
    for receipt in receipts.select_related("submission__call__elicitation").order_by("sequence").iterator(500):
        length += 1
        for fault in _faults(receipt, length, head):
            yield f"{receipt} of {receipt.agent}: {fault}"
        head = receipt.sha256
    chain = Chain.objects.filter(protocol=RECEIPT).first() or Chain(protocol=RECEIPT)
    if (length, head) != (chain.length, chain.head):
        yield f"receipts: their head is {chain.length} {chain.head}, they end {length} {head}"
    first = Receipt.objects.order_by("sequence").values_list("submission", flat=True).first()
    without = (
        Submission.objects.filter(status=CREATED, receipt=None, pk__gt=first) if first else Submission.objects.none()
    )
    for pk in without.order_by("pk").values_list("pk", flat=True):
        yield f"submission {pk} was accepted and has no receipt"


def receipt_head(length: int) -> str:
    """The hash of the receipt that was the last one of so many; of none that of no chain."""
    return Receipt.objects.filter(sequence=length).values_list("sha256", flat=True).first() or GENESIS


def _faults(receipt: Receipt, sequence: int, previous: str) -> Iterator[str]:
    submission = receipt.submission
    call = submission.call
    if (receipt.sequence, receipt.previous) != (sequence, previous):
        yield f"it does not follow no. {sequence - 1}, {previous}"
    if record_sha256(receipt.body) != receipt.sha256:
        yield "its sha256 is not that of its body"
    if not is_signature(receipt.signature, receipt.body, receipt.key.public_key):
        yield f"its signature is not that of the key {receipt.key_id}"
    if receipt.answer_sha256 != hashlib.sha256(call.raw_response.encode()).hexdigest():
        yield f"call {call.pk} holds another answer"
    if receipt.prompt_sha256 != call.prompt_sha256:
        yield f"call {call.pk} holds another prompt"
    facts = (submission.registration.family.slug, task_name(submission), submission.received_at)
    if (receipt.agent, receipt.task, receipt.received_at) != facts:
        yield "it names another agent, task or time than its submission"


def task_name(submission: Submission) -> str:
    """The name in receipts of the task that a submission answers."""
    decision, elicitation = submission.call.decision, submission.call.elicitation
    if decision is not None:
        return f"agent-{decision.agent_id}-universe-{decision.universe_id}"
    assert elicitation is not None
    return f"batch-{elicitation.batch_id}"
