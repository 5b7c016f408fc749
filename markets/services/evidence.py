"""Evidence for a day's questions: gathered by one query rule between their choice and their freeze."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from markets.models import EvidenceSnippet, QuestionEntry


class EvidenceUnavailable(Exception):
    """The source is down or answers nothing that can be read: conditions with evidence are not asked that day."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was gathered.

    snippets : by the key of a question's candidate, unsaved and without their entry, in order
    dropped : the number of texts that were dropped, by reason
    ended_at : when the last of them was retrieved, on the arena's clock; the freeze is not before
    """

    snippets: Mapping[str, Sequence[EvidenceSnippet]]
    ended_at: datetime
    dropped: Mapping[str, int] = field(default_factory=dict)


def store_snippets(entries: Mapping[str, QuestionEntry], evidence: Evidence) -> None:
    """Stores the snippets with the stored entries of their questions, by the key of their candidates."""
    rows = []
    for key, entry in entries.items():
        for position, snippet in enumerate(evidence.snippets.get(key, ()), start=1):
            snippet.entry, snippet.position = entry, position
            rows.append(snippet)
    EvidenceSnippet.objects.bulk_create(rows)


def evidence_sha256(snippets: Iterable[tuple[int, EvidenceSnippet]]) -> str:
    """SHA-256 over the snippets in order, a line of canonical JSON for each.

    A line holds the position of its question in the set, its own, title, source, address, both dates, and the SHA-256
    of its text.
    """
    lines = []
    for position, snippet in snippets:
        dates = [at.isoformat() if at else None for at in (snippet.published_at, snippet.retrieved_at)]
        fields = [position, snippet.position, snippet.title, snippet.source, snippet.url, *dates, snippet.sha256]
        lines.append(json.dumps(fields))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
