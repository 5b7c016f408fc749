"""Receipts of accepted answers: signed, and entered in a register that is a chain of its own."""

import hashlib
from datetime import datetime

from agents.models import AgentVersion, Chain, Receipt, Registration, Submission
from agents.records import RECEIPT, record_sha256
from agents.services.chain import lock_chain
from agents.services.signing_keys import key_of_receipts
from agents.signing import sign


def agent_version(registration: Registration, at: datetime) -> str:
    """The version of an agent that answers at `at`."""
    versions = AgentVersion.objects.filter(family=registration.family_id, began_at__lte=at)
    return str(versions.order_by("-number").values_list("number", flat=True).first() or 1)


def issue_receipt(submission: Submission, *, task: str, answer: str, at: datetime) -> Receipt:
    """The receipt of an accepted answer, in the transaction that accepts it, which locks nothing after it.

    Raises SigningKeyMismatch.
    """
    chain = lock_chain(RECEIPT)
    key, private_key = key_of_receipts(at)
    receipt = Receipt(
        sequence=chain.length + 1,
        submission=submission,
        agent=submission.registration.family.slug,
        version=agent_version(submission.registration, at),
        task=task,
        answer_sha256=hashlib.sha256(answer.encode()).hexdigest(),
        prompt_sha256=submission.call.prompt_sha256,
        received_at=at,
        previous=chain.head,
        key=key,
    )
    receipt.sha256, receipt.signature = record_sha256(receipt.body), sign(receipt.body, private_key)
    receipt.save(force_insert=True)
    Chain.objects.filter(pk=chain.pk).update(length=receipt.sequence, head=receipt.sha256)
    return receipt
