"""The audit of evidence after the resolution: which snippets state what happened."""

from datetime import datetime

from django.db import transaction
from django.db.models import F, Q

from markets.models import EvidenceSnippet, Question
from markets.outcome_statements import states_outcome


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
