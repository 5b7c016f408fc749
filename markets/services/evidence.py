"""Evidence for a day's questions: gathered by one query rule between choice and freeze, and audited later."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from foundation import draining
from foundation.json_lines import instant_text
from foundation.site_hosts import site_hosts
from markets.evidence_filters import UNREADABLE, EvidenceFilter
from markets.models import EvidenceClaim, EvidenceSnippet, Question, QuestionEntry
from markets.outcome_statements import states_outcome
from markets.question_selection import QuestionCandidate
from markets.services.prices import is_replay
from markets.sources.evidence.base import EvidenceAnswer, EvidenceSource, EvidenceText, SourceUnavailable

if TYPE_CHECKING:
    from markets.selection_rule import EvidenceRule


EVIDENCE_S = 240
"""How long the evidence of a day may take in all."""
LEASE = timedelta(seconds=EVIDENCE_S + 60)
"""As long, and the time to store it."""


class EvidenceUnavailable(Exception):
    """The source is down or answers nothing that can be read: conditions with evidence are not asked that day."""


class EvidenceClaimed(Exception):
    """The evidence of the day is left to another worker, or to a later run."""


@contextmanager
def claim_evidence(day: datetime, methodology: str) -> Iterator[None]:
    """The claim on a day's evidence, held while the block gathers and stores it. Raises EvidenceClaimed."""
    now = timezone.now()
    lease_until = now + LEASE
    claims = EvidenceClaim.objects.filter(day=day, methodology=methodology)
    try:
        with transaction.atomic():
            EvidenceClaim.objects.create(day=day, methodology=methodology, lease_until=lease_until)
    except IntegrityError:
        if not claims.filter(lease_until__lte=now).update(lease_until=lease_until):
            raise EvidenceClaimed(f"another run is gathering the evidence of {day:%Y-%m-%d}") from None
    try:
        yield
    finally:
        claims.filter(lease_until=lease_until).delete()


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


class EvidenceGatherer:
    """Gathers the evidence for a day's questions from a source, which it opens for each call.

    The arena's clock stands at the run's instant when this is made, and goes on from there; in a replay it stands.
    """

    def __init__(
        self,
        open_source: Callable[[], AbstractContextManager[EvidenceSource]],
        rule: EvidenceRule,
        at: datetime,
        *,
        query_usd: Decimal = Decimal(0),
        most_usd: Decimal = Decimal(0),
    ) -> None:
        self.open_source, self.rule, self.at = open_source, rule, at
        self.query_usd, self.most_usd = query_usd, most_usd
        self.replay = is_replay(at)
        self._started_s = time.monotonic()

    def clock(self) -> datetime:
        return self.at if self.replay else self.at + timedelta(seconds=time.monotonic() - self._started_s)

    def __call__(self, candidates: Sequence[QuestionCandidate]) -> Evidence:
        """The evidence for candidates. Raises EvidenceUnavailable if the source fails, or gave nothing to show."""
        queries = {candidate.key: self.rule.query.replace("{question}", candidate.text) for candidate in candidates}
        if draining.is_stopping():
            raise EvidenceClaimed(draining.STOPPING)
        distinct = list(dict.fromkeys(queries.values()))
        if len(distinct) * self.query_usd > max(self.most_usd, Decimal(0)):
            raise EvidenceUnavailable(
                f"{len(distinct)} queries at ${self.query_usd} each do not fit into the week's spend limit"
            )
        answer = self._texts(distinct)
        ended_at = self.clock()
        dropped = Counter({UNREADABLE: answer.unreadable})
        text_filter = EvidenceFilter(self.rule, ended_at, self.replay, site_hosts(), dropped)
        snippets: dict[str, list[EvidenceSnippet]] = {}
        for candidate in candidates:
            siblings = [sibling for sibling in candidates if sibling.key != candidate.key]
            texts = text_filter.shown(answer.texts.get(queries[candidate.key], ()), siblings)
            snippets[candidate.key] = []
            for position, text in enumerate(texts, start=1):
                snippets[candidate.key].append(_snippet(text, self.rule, ended_at, position))
        counts = dict(sorted((+dropped).items()))
        if not any(snippets.values()):
            raise EvidenceUnavailable(f"the source of evidence gave nothing to show; dropped: {counts or 'nothing'}")
        return Evidence(snippets, ended_at, counts)

    def _texts(self, queries: Sequence[str]) -> EvidenceAnswer:
        with self.open_source() as source:
            if self.replay and not source.is_stored:
                raise EvidenceUnavailable("a replay asks no service: it needs stored texts")
            try:
                return source.texts(queries, self.clock, EVIDENCE_S)
            except SourceUnavailable as error:
                if draining.is_stopping():  # which cut it short: a later run gathers
                    raise EvidenceClaimed(draining.STOPPING) from None
                raise EvidenceUnavailable(f"the source of evidence is down: {error}") from None


def _snippet(text: EvidenceText, rule: EvidenceRule, ended_at: datetime, position: int) -> EvidenceSnippet:
    visible_text = text.text[: rule.characters].rstrip()
    retrieved_at = text.retrieved_at
    return EvidenceSnippet(
        position=position,
        title=text.title,
        url=text.url,
        source=text.source,
        published_at=text.published_at,
        retrieved_at=ended_at if retrieved_at is None else min(retrieved_at, ended_at),
        text=visible_text,
        sha256=hashlib.sha256(visible_text.encode()).hexdigest(),
    )


def store_snippets(entries: Mapping[str, QuestionEntry], evidence: Evidence) -> None:
    """Stores the snippets with the stored entries of their questions, by the key of their candidates."""
    rows = []
    for key, entry in entries.items():
        for snippet in evidence.snippets.get(key, ()):
            snippet.entry = entry
            rows.append(snippet)
    EvidenceSnippet.objects.bulk_create(rows)


def evidence_sha256(snippets: Iterable[tuple[int, EvidenceSnippet]]) -> str:
    """SHA-256 over the snippets in order, a line of canonical JSON for each.

    A line holds the position of its question in the set, its own, title, source, address, both dates (UTC, to the
    microsecond), and the SHA-256 of its text.
    """
    lines = []
    for position, snippet in snippets:
        dates = [at and instant_text(at) for at in (snippet.published_at, snippet.retrieved_at)]
        fields = [position, snippet.position, snippet.title, snippet.source, snippet.url, *dates, snippet.sha256]
        lines.append(json.dumps(fields))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def audit_evidence(*, at: datetime) -> int:
    """Marks the snippets of questions that resolved by `at` and were not audited since; returns how many state it.

    A forecast whose evidence states the outcome counts on no board (`Forecast.objects.counted`).
    """
    entry = "entry__question__"
    stale = Q(audited_at=None) | Q(audited_at__lt=F(f"{entry}resolved_at"))
    resolved = Q(**{f"{entry}status": Question.Status.RESOLVED, f"{entry}resolved_at__lte": at})
    snippets = EvidenceSnippet.objects.filter(stale, resolved).order_by("pk")
    snippets = snippets.select_related("entry__question", "entry__question_set")
    audited = list(snippets.prefetch_related("entry__question__options"))
    for snippet in audited:
        question = snippet.entry.question
        happened = {option.name: option.happened for option in question.options.all()}
        text, year = f"{snippet.title}\n{snippet.text}", snippet.entry.question_set.day.year
        snippet.states_outcome = states_outcome(text, question.text, happened, asked_in=year)
        snippet.audited_at = at
    with transaction.atomic():
        EvidenceSnippet.objects.bulk_update(audited, ["states_outcome", "audited_at"], batch_size=200)
    return sum(bool(snippet.states_outcome) for snippet in audited)
