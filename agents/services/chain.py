"""The chains of completed decisions and elicitations: appending a link, and verification."""

from collections.abc import Iterator
from typing import Any

from django.db.models import F

from agents.models import Chain, ChainLink, Decision, Elicitation, ModelCall, Task
from agents.records import (
    GENESIS,
    PROTOCOLS,
    forecast_record,
    instant_text,
    link_sha256,
    record_sha256,
    sha256,
    trading_record,
)
from markets.foundation.json_lines import json_number

ENDED_IN = (*ModelCall.READ, ModelCall.Result.MALFORMED, ModelCall.Result.DECLINED)
"""Results of the last call of a completed task."""
CHUNK = 200


def append_to_chain(task: Task) -> ChainLink:
    """The link of a task that has just been completed, in the transaction that completes it.

    Nothing else is locked after the chain, so that two workers queue here and never wait for each other.
    """
    ended = task.calls.filter(late=False, result__in=ENDED_IN).only("prompt_sha256", "raw_response")
    call = ended.order_by("-sequence").first()
    record = record_sha256(task_record(task, call))
    chain = lock_chain(task.PROTOCOL)
    link = ChainLink.objects.create(
        protocol=task.PROTOCOL,
        sequence=chain.length + 1,
        call=call,
        record_sha256=record,
        previous=chain.head,
        sha256=link_sha256(chain.head, record),
        **{str(task._meta.model_name): task},
    )
    Chain.objects.filter(pk=chain.pk).update(length=link.sequence, head=link.sha256)
    return link


def lock_chain(protocol: str) -> Chain:
    """The chain, locked until the transaction ends: by a write, as `agents.services.ledger.lock_agent` does."""
    chains = Chain.objects.filter(protocol=protocol)
    if not chains.update(length=F("length")):
        Chain.objects.bulk_create([Chain(protocol=protocol)], ignore_conflicts=True)
        chains.update(length=F("length"))
    return chains.get()


def task_record(task: Task, call: ModelCall | None) -> dict[str, Any]:
    """The canonical record of a completed task that ended with a call."""
    hashes = {
        "prompt": call.prompt_sha256 if call else None,
        "answer": sha256(call.raw_response) if call else None,
    }
    if isinstance(task, Decision):
        return _decision_record(task, hashes)
    assert isinstance(task, Elicitation)
    return _elicitation_record(task, hashes)


def _decision_record(decision: Decision, hashes: dict[str, Any]) -> dict[str, Any]:
    assert decision.decided_at is not None
    cohort, agent = decision.cohort, decision.agent
    trades = decision.trades.order_by("sequence").values_list(
        "sequence", "market__source", "market__external_id", "outcome__side", "kind", "shares", "price", "amount"
    )
    return trading_record(
        cohort=cohort.number,
        week=decision.week,
        family=agent.family.slug,
        model=agent.model_id,
        methodology=cohort.methodology.version,
        universe=decision.universe.sha256 if decision.universe else None,
        action=str(decision.action),
        fallback=decision.fallback,
        trades=[
            {
                "sequence": sequence,
                "market": f"{source}:{external_id}",
                "side": side,
                "kind": kind,
                "shares": json_number(shares),
                "price": json_number(price),
                "amount": json_number(amount),
            }
            for sequence, source, external_id, side, kind, shares, price, amount in trades
        ],
        decided_at=instant_text(decision.decided_at),
        **hashes,
    )


def _elicitation_record(task: Elicitation, hashes: dict[str, Any]) -> dict[str, Any]:
    assert task.made_at is not None
    batch, questions = task.batch, task.batch.question_set
    forecasts = task.forecasts.order_by("entry__position").values_list("question__options_sha256", "probabilities")
    return forecast_record(
        day=instant_text(questions.day),
        part=questions.part,
        batch=batch.number,
        arm=batch.arm,
        family=task.family.slug,
        model=task.model_id,
        methodology=task.methodology.version,
        questions=questions.sha256,
        declined=task.declined,
        forecasts=[{"question": question, "probabilities": stated} for question, stated in forecasts],
        made_at=instant_text(task.made_at),
        **hashes,
    )


def verify_chain() -> tuple[int, list[str]]:
    """How many links were checked, and a line for each violation that names its row."""
    violations, checked = [], 0
    for protocol in PROTOCOLS:
        chain = _chain(protocol)
        length, head = 0, GENESIS
        # Up to the head that was read first: a live arena adds links meanwhile.
        for link in _links(protocol, chain.length):
            length += 1
            violations += [f"{_whose(link)}: {protocol} link {link.sequence} {w}" for w in _link(link, length, head)]
            head = link.sha256
        if (length, head) != (chain.length, chain.head):
            violations.append(
                f"{protocol} chain: its head is {chain.length} {chain.head}, its links end {length} {head}"
            )
        links = ChainLink.objects.filter(protocol=protocol).count()
        if links > _chain(protocol).length:
            violations.append(f"{protocol} chain: {links} links, more than the {_chain(protocol).length} of its head")
        checked += length
    return checked, [*violations, *_unlinked()]


def _chain(protocol: str) -> Chain:
    return Chain.objects.filter(protocol=protocol).first() or Chain(protocol=protocol)


def _links(protocol: str, length: int) -> Iterator[ChainLink]:
    links = ChainLink.objects.filter(protocol=protocol, sequence__lte=length).order_by("sequence")
    if protocol == Decision.PROTOCOL:
        links = links.select_related("call", "decision__agent__family", "decision__universe").prefetch_related(
            "decision__cohort__methodology"
        )
        links = links.defer("decision__universe__market_block")
    else:
        links = links.select_related(
            "call", "elicitation__batch__question_set", "elicitation__family", "elicitation__release"
        ).prefetch_related("elicitation__methodology")
        links = links.defer("elicitation__batch__block")
    return links.iterator(chunk_size=CHUNK)


def _whose(link: ChainLink) -> str:
    task = link.task
    if isinstance(task, Decision):
        return f"{task.agent.family.slug} in cohort {task.cohort.number} (agent {task.agent_id})"
    assert isinstance(task, Elicitation)
    return f"{task.family.slug}, {task.batch} (elicitation {task.pk})"


def _link(link: ChainLink, sequence: int, previous: str) -> Iterator[str]:
    task = link.task
    if link.sequence != sequence or link.previous != previous:
        yield f"does not follow no. {sequence - 1}, which ends {previous}"
    if task.status != Task.Status.COMPLETED:
        yield f"{task._meta.verbose_name} {task.pk} is {task.status}"
    elif link.record_sha256 != record_sha256(task_record(task, link.call)):
        yield f"holds another record than the rows of {task._meta.verbose_name} {task.pk} make"
    if link.sha256 != link_sha256(link.previous, link.record_sha256):
        yield "its hash is not that of its record and the hash before it"


def _unlinked() -> Iterator[str]:
    for task in (Decision, Elicitation):
        completed = task.objects.filter(status=Task.Status.COMPLETED, link=None)
        for pk in completed.order_by("pk").values_list("pk", flat=True):
            yield f"{task._meta.verbose_name} {pk} is completed and in no chain"
