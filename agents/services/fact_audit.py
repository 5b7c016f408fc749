"""Verification of facts that an archive does not hold: a row that was rewritten contradicts another one."""

from collections.abc import Iterator

from django.db.models import F, Q, QuerySet

from agents.models import Agent, ChainLink, DailyAnchor, Decision, Forecast
from agents.records import GENESIS, RECEIPT
from agents.services.receipt_audit import receipt_head
from agents.signing import is_signed


def verify_facts() -> Iterator[str]:
    """A line for each violation that names its row."""
    for rows, fault in _contradictions():
        for pk in rows.order_by("pk").values_list("pk", flat=True):
            yield f"{rows.model._meta.verbose_name} {pk} {fault}"
    yield from _anchors()


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
