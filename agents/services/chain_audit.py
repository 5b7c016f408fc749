"""Verification of the chains: every link, its record, and that no completed task is without one."""

from collections.abc import Iterator

from agents.models import Chain, ChainLink, Decision, Elicitation, Task
from agents.records import ARCHIVE, GENESIS, PROTOCOLS, link_sha256, record_sha256
from agents.services.task_records import task_record

CHUNK = 200


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
    if protocol == ARCHIVE:
        return links.iterator(chunk_size=CHUNK)
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
    if task is None:
        return "archive"
    if isinstance(task, Decision):
        return f"{task.agent.family.slug} in cohort {task.cohort.number} (agent {task.agent_id})"
    assert isinstance(task, Elicitation)
    return f"{task.family.slug}, {task.batch} (elicitation {task.pk})"


def _link(link: ChainLink, sequence: int, previous: str) -> Iterator[str]:
    task = link.task
    if link.sequence != sequence or link.previous != previous:
        yield f"does not follow no. {sequence - 1}, which ends {previous}"
    if task is None:
        if link.record_sha256 != record_sha256(link.record):
            yield "has another hash than its record"
    elif task.status != Task.Status.COMPLETED:
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
