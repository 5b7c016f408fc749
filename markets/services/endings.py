"""How questions end: what their markets came to decides, never a price."""

from datetime import datetime

from django.db import transaction

from markets.models import Market, Question, QuestionOption

FINAL = (Question.Status.RESOLVED, Question.Status.CANCELLED)
Happened = dict[int, bool]
"""By an option's id whether it happened."""


def questions_resolve(*, at: datetime) -> int:
    """Closes, resolves or cancels the questions whose markets have moved; returns how many came to their end."""
    ended = 0
    for question in Question.objects.to_resolve().prefetch_related("options__outcome__market").order_by("pk"):
        ended += _resolve(question, at)
    return ended


def _resolve(question: Question, at: datetime) -> bool:
    options = list(question.options.all())
    markets = [option.outcome.market for option in options if option.outcome]
    found = what_happened(question, options)
    if found is not None:
        return _end(question, Question.Status.RESOLVED, found, at)
    if all(market.is_final for market in markets):
        return _end(question, Question.Status.CANCELLED, {}, at)
    if all(market.status != Market.Status.ACTIVE for market in markets):
        still_open = Question.objects.filter(pk=question.pk, status=Question.Status.OPEN)
        still_open.update(status=Question.Status.CLOSED, closed_at=at)
    return False


def what_happened(question: Question, options: list[QuestionOption]) -> Happened | None:
    """Which options happened, as far as the markets decide it; None while they do not, or where they contradict.

    One winner decides an exclusive question, its other markets open or not. Without a winner it takes every market's
    end, and none may be cancelled: then it was none of these, where that is an option.
    """
    markets = {option.pk: option.outcome.market for option in options if option.outcome}
    won = [
        option
        for option in options
        if option.outcome is not None and markets[option.pk].winning_outcome_id == option.outcome_id
    ]
    all_resolved = all(market.status == Market.Status.RESOLVED for market in markets.values())
    if not question.exclusive:
        return {option.pk: option in won for option in options} if all_resolved else None
    if len(won) == 1:
        return {option.pk: option is won[0] for option in options}
    none_of_these = [option for option in options if option.outcome is None]
    if not won and all_resolved and none_of_these:
        return {option.pk: option in none_of_these for option in options}
    return None


def _end(question: Question, status: Question.Status, happened: Happened, at: datetime) -> bool:
    with transaction.atomic():
        ended = Question.objects.unresolved().filter(pk=question.pk).update(
            status=status, resolved_at=at, closed_at=question.closed_at or at
        )  # fmt: skip
        if ended:
            for pk, value in happened.items():
                QuestionOption.objects.filter(pk=pk).update(happened=value)
    return bool(ended)


def questions_reconsider(market: Market, *, at: datetime) -> list[int]:
    """Gives the questions on a market whose end was reversed the end they have now; returns the ids of those changed.

    One that its markets decide no more waits again.
    """
    changed = []
    questions = Question.objects.filter(options__outcome__market=market, status__in=FINAL).distinct()
    for question in questions.prefetch_related("options__outcome__market").order_by("pk"):
        if _reconsider(question, at):
            changed.append(question.pk)
    return changed


def _reconsider(question: Question, at: datetime) -> bool:
    options = list(question.options.all())
    markets = [option.outcome.market for option in options if option.outcome]
    found = what_happened(question, options)
    ended: datetime | None = at
    if found is not None:
        status = Question.Status.RESOLVED
    elif all(market.is_final for market in markets):
        status = Question.Status.CANCELLED
    else:
        open_still = any(market.status == Market.Status.ACTIVE for market in markets)
        status, ended = (Question.Status.OPEN if open_still else Question.Status.CLOSED), None
    due = {option.pk: (found or {}).get(option.pk) for option in options}
    if status == question.status and all(option.happened == due[option.pk] for option in options):
        return False
    with transaction.atomic():
        Question.objects.filter(pk=question.pk).update(status=status, resolved_at=ended)
        for pk, value in due.items():
            QuestionOption.objects.filter(pk=pk).update(happened=value)
    return True
