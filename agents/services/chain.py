"""The chains of completed decisions and elicitations, of archives and of published boards: appending a link."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from agents.models import Chain, ChainLink, Envelope, ModelCall, Task
from agents.records import ARCHIVE, BOARD, link_sha256, record_sha256
from agents.services.task_records import task_record
from foundation.locks import lock_rows

ENDED_IN = (*ModelCall.READ, ModelCall.Result.MALFORMED, ModelCall.Result.DECLINED)
"""Results of the last call of a completed task."""


def append_to_chain(task: Task) -> ChainLink:
    """The link of a task that has just been completed, in the transaction that completes it.

    Nothing else is locked after the chain, so that two workers queue here and never wait for each other.
    """
    record, call = completed_record(task)
    return _append(task.PROTOCOL, record, call=call, **{str(task._meta.model_name): task})


def append_envelope(envelope: Envelope) -> ChainLink:
    """The link of an answer that has just been sealed, in the transaction that stores its envelope."""
    return _append(envelope.task.PROTOCOL, envelope.sha256, envelope=envelope)


def completed_record(task: Task) -> tuple[str, ModelCall | None]:
    """The checksum of a completed task's record, and the call that it ended with."""
    call = task.calls.filter(late=False, result__in=ENDED_IN).order_by("-sequence").first()
    return record_sha256(task_record(task, call)), call


def append_archive(record: Mapping[str, Any]) -> ChainLink:
    """The link of an archive with this record; the last one of the chain if it is of the same record."""
    sha256 = record_sha256(record)
    with transaction.atomic():
        chain = lock_chain(ARCHIVE)
        last = ChainLink.objects.filter(protocol=ARCHIVE, sequence=chain.length).first()
        if last is not None and last.record_sha256 == sha256:
            return last
        return _append(ARCHIVE, sha256, record=record)


def append_publication(boards: Sequence[Mapping[str, Any]]) -> ChainLink:
    """The link of boards that are published together, by their selections, instants and hashes.

    Call it in the transaction that stores them, with the chain locked.
    """
    record = {"protocol": BOARD, "boards": list(boards)}
    return _append(BOARD, record_sha256(record), record=record)


def _append(protocol: str, record_hash: str, **fields: Any) -> ChainLink:
    chain = lock_chain(protocol)
    link = ChainLink.objects.create(
        protocol=protocol,
        sequence=chain.length + 1,
        record_sha256=record_hash,
        previous=chain.head,
        sha256=link_sha256(chain.head, record_hash),
        **fields,
    )
    Chain.objects.filter(pk=chain.pk).update(length=link.sequence, head=link.sha256)
    return link


def lock_chain(protocol: str) -> Chain:
    """The chain, locked until the transaction ends: by a write, as `agents.services.ledger.lock_agent` does."""
    chains = Chain.objects.filter(protocol=protocol)
    if not lock_rows(chains):
        Chain.objects.bulk_create([Chain(protocol=protocol)], ignore_conflicts=True)
        lock_rows(chains)
    return chains.get()
