"""Verification of facts that are recorded twice: a row that was rewritten contradicts another one."""

from collections.abc import Iterator

from django.db.models import F, Min, OuterRef, Q, QuerySet, Subquery

from agents.models import (
    Agent,
    ChainLink,
    DailyAnchor,
    Decision,
    Forecast,
    JournalEntry,
    Position,
    Reversal,
    Settlement,
    Trade,
)
from agents.records import GENESIS, RECEIPT
from agents.services.receipt_audit import receipt_head
from agents.signing import is_signed
from markets.models import Universe
from markets.services.universes import fingerprint


def verify_facts() -> Iterator[str]:
    """A line for each violation that names its row."""
    for rows, fault in _contradictions():
        for pk in rows.order_by("pk").values_list("pk", flat=True):
            yield f"{rows.model._meta.verbose_name} {pk} {fault}"
    yield from _universes()
    yield from _anchors()


def _contradictions() -> Iterator[tuple[QuerySet, str]]:
    """Rows that contradict the row that they follow from, and in what."""
    release = {"family": "release__family", "model_id": "release__model_id"}
    prices = {"price_prompt": "release__price_prompt", "price_completion": "release__price_completion"}
    yield Agent.objects.filter(_differs(**release, **prices)), "has another model or other prices than its release"
    yield Decision.objects.filter(_differs(cohort="agent__cohort")), "names another cohort than its agent"
    place = {"outcome": "position__outcome", "market": "position__market", "executed_at": "decision__decided_at"}
    yield (
        Trade.objects.filter(_differs(agent="decision__agent", **place)),
        "names another agent, market, outcome or time than its decision and position",
    )
    first = Trade.objects.filter(position=OuterRef("pk")).order_by().values("position").annotate(at=Min("executed_at"))
    opened = Position.objects.annotate(first_traded_at=Subquery(first.values("at")))
    yield (
        opened.filter(_differs(market="outcome__market", opened_at="first_traded_at")),
        "names another market or time than its outcome and first trade",
    )
    account = {"agent": "position__agent", "market": "position__market"}
    yield (
        Settlement.objects.filter(_differs(**account, settled_at="position__closed_at")),
        "names another agent, market or time than its position",
    )
    yield Reversal.objects.filter(_differs(**account)), "names another agent or market than its position"
    yield from _journal_entries()
    yield Forecast.objects.filter(_differs(elicitation="call__elicitation")), "names the answer to another task"


def _journal_entries() -> Iterator[tuple[QuerySet, str]]:
    """Journal entries that are of another account or time than their cause."""
    causes = {"trade": "executed_at", "settlement": "settled_at", "reversal": "reversed_at"}
    for cause, time in causes.items():
        entries = JournalEntry.objects.filter(**{f"{cause}__isnull": False})
        of_another = _differs(agent=f"{cause}__agent", occurred_at=f"{cause}__{time}")
        yield entries.filter(of_another), f"names another agent or time than its {cause}"
    deposits = JournalEntry.objects.filter(kind=JournalEntry.Kind.DEPOSIT)
    yield deposits.filter(_differs(occurred_at="agent__cohort__started_at")), "is of another time than its cohort"


def _differs(**fields: str) -> Q:
    """The condition that one of the fields is not what it names."""
    condition = Q()
    for name, other in fields.items():
        condition |= ~Q(**{name: F(other)})
    return condition


def _universes() -> Iterator[str]:
    """Violations of universes: the fingerprint follows from the entries and the texts shown."""
    for universe in Universe.objects.order_by("pk").iterator(chunk_size=1):
        entries = list(universe.entries.select_related("market").order_by("position"))
        if fingerprint(entries, universe.market_block) != universe.sha256:
            yield f"universe {universe.pk}: the fingerprint is not that of its entries and texts"


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
