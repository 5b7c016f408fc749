"""Verification of facts that an archive does not hold, and of the register of receipts."""

from collections.abc import Iterator

from django.db.models import F, Q, QuerySet

from agents.models import Agent, ChainLink, DailyAnchor, Decision, Forecast, Receipt, Submission
from agents.records import GENESIS, RECEIPT
from agents.signing import is_signed


def verify_facts() -> Iterator[str]:
    """A line for each violation that names its row."""
    for rows, fault in _contradictions():
        for pk in rows.order_by("pk").values_list("pk", flat=True):
            yield f"{rows.model._meta.verbose_name} {pk} {fault}"
    yield from _anchors()
    yield from _submissions_without_receipt()


def _contradictions() -> Iterator[tuple[QuerySet, str]]:
    """Rows that contradict the row that they follow from, and in what."""
    release = {"family": "release__family", "model_id": "release__model_id"}
    prices = {"price_prompt": "release__price_prompt", "price_completion": "release__price_completion"}
    yield Agent.objects.filter(_differs(**release, **prices)), "has another model or other prices than its release"
    yield Decision.objects.filter(_differs(cohort="agent__cohort")), "names another cohort than its agent"
    yield Forecast.objects.filter(_differs(elicitation="call__elicitation")), "names the answer to another task"
    alone = Forecast.objects.filter(samples__isnull=True)
    yield alone.filter(_differs(excluded="call__excluded")), "is excluded for another reason than its call"


def _differs(**fields: str) -> Q:
    """The condition that one of the fields is not what it names."""
    condition = Q()
    for name, column in fields.items():
        condition |= ~Q(**{name: F(column)})
    return condition


def _anchors() -> Iterator[str]:
    """Violations of the heads signed each day: the signature is right, and the chains have these links."""
    for anchor in DailyAnchor.objects.order_by("day"):
        if not is_signed(anchor.document) or not anchor.document["at"].startswith(anchor.day.isoformat()):
            yield f"signed heads of {anchor.day} (row {anchor.pk}): not what was signed on that day"
            continue
        for protocol, head in anchor.document["chains"].items():
            links = ChainLink.objects.filter(protocol=protocol, sequence=head["length"])
            linked = links.values_list("sha256", flat=True).first() or GENESIS
            if protocol == RECEIPT:
                linked = receipt_head(head["length"])
            if linked != head["head"]:
                yield f"{protocol} chain: link {head['length']} is not the one that was signed on {anchor.day}"


CREATED = 201


def _submissions_without_receipt() -> Iterator[str]:
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
