"""Scheduled closes of open questions, which follow those of their markets."""

from django.db import transaction
from django.db.models import F, Max

from foundation.bulk import compare_and_swap
from markets.models import Market, Question


def update_scheduled_closes() -> int:
    """Gives open questions the latest close of their open markets; returns how many changed.

    A venue moves a close, or states later when the event is expected to end. What prompts have shown stays with the
    entries of question sets.
    """
    open_questions = Question.objects.filter(
        status=Question.Status.OPEN, options__outcome__market__status=Market.Status.ACTIVE
    )
    latest = open_questions.order_by().annotate(latest=Max("options__outcome__market__closes_at"))
    moved = latest.exclude(latest=None).exclude(closes_at=F("latest"))
    closes = {pk: (closes_at,) for pk, closes_at in moved.values_list("pk", "latest")}
    expected = dict.fromkeys(closes, Question.Status.OPEN)
    with transaction.atomic():
        return len(compare_and_swap(Question, closes, ("closes_at",), field="status", expected=expected))
