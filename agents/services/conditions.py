"""The conditions of the forecast protocol that are asked now: on, with their sources configured, and not paused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings

from agents.services.run_settings import paused_conditions
from markets.question_selection import QuestionCandidate
from markets.services.evidence import Evidence, EvidenceGatherer
from markets.sources.registry import evidence_query_usd, evidence_source

if TYPE_CHECKING:
    from markets.selection_rule import Condition, SelectionRule, Source


def configured_sources() -> frozenset[Source]:
    """The sources that conditions may need, as far as they are configured."""
    sources: set[Source] = set()
    if settings.ARENA_EVIDENCE:
        sources.add("evidence")
    if settings.ARENA_SEARCH:
        sources.add("search")
    return frozenset(sources)


def conditions_on(rule: SelectionRule) -> list[Condition]:
    """The conditions that are on, with their sources configured. Reads no database."""
    configured = configured_sources()
    return [condition for condition in rule.conditions if condition.is_on(configured)]


def conditions_to_ask(rule: SelectionRule) -> list[Condition]:
    """The conditions that are on and that no operator has paused."""
    paused = paused_conditions()
    return [condition for condition in conditions_on(rule) if condition.name not in paused]


def evidence_gatherer(
    rule: SelectionRule, at: datetime, *, most_usd: Decimal
) -> Callable[[Sequence[QuestionCandidate]], Evidence] | None:
    """The gatherer of evidence for a day's questions at no more than that cost; None where no source is configured."""
    if not settings.ARENA_EVIDENCE:
        return None
    open_source = partial(evidence_source, rule.evidence.excluded_hosts)
    return EvidenceGatherer(open_source, rule.evidence, at, query_usd=evidence_query_usd(), most_usd=most_usd)


def evidence_cost(questions: int, conditions: Iterable[Condition]) -> Decimal:
    """US dollars for the evidence of so many questions, if one of the conditions shows any."""
    return questions * evidence_query_usd() if any(condition.has_evidence for condition in conditions) else Decimal(0)
