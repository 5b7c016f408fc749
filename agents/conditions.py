"""The conditions of the forecast protocol that are asked now: on, with their sources configured, and not paused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from django.conf import settings

from agents.services.run_settings import paused_conditions
from markets.prompt_conditions import EVIDENCE, SEARCH
from markets.question_selection import QuestionCandidate
from markets.services.evidence import Evidence, EvidenceGatherer
from markets.sources.registry import evidence_source

if TYPE_CHECKING:
    from markets.selection_rule import Condition, SelectionRule


def configured_sources() -> frozenset[str]:
    """The sources that conditions may need, as far as they are configured."""
    sources = set()
    if settings.ARENA_EVIDENCE:
        sources.add(EVIDENCE)
    if settings.ARENA_SEARCH:
        sources.add(SEARCH)
    return frozenset(sources)


def conditions_on(rule: SelectionRule) -> list[Condition]:
    """The conditions that are on, with their sources configured. Reads no database."""
    configured = configured_sources()
    return [condition for condition in rule.conditions if condition.is_on(configured)]


def conditions_to_ask(rule: SelectionRule) -> list[Condition]:
    """The conditions that are on and that no operator has paused."""
    paused = paused_conditions()
    return [condition for condition in conditions_on(rule) if condition.name not in paused]


def evidence_gatherer(rule: SelectionRule, at: datetime) -> Callable[[Sequence[QuestionCandidate]], Evidence] | None:
    """The gatherer of evidence for a day's questions; None where no source is configured."""
    if not settings.ARENA_EVIDENCE:
        return None
    return EvidenceGatherer(partial(evidence_source, rule.evidence.excluded_hosts), rule.evidence, at)
