"""Resolving questions by the resolutions of their markets, and their scheduled closes; prices play no part."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from django.db import transaction
from django.db.models import F, Max, Prefetch

from foundation.bulk import FieldValues, compare_and_swap
from markets.models import Market, Question, QuestionOption
from markets.models.question import QuestionQuerySet

FINAL = (Question.Status.RESOLVED, Question.Status.CANCELLED)
CHUNK = 100
"""Questions resolved in one transaction: a few tenths of a second at most in which other writers wait."""
HappenedByOption = dict[int, bool | None]
"""Option id to whether the option happened; None if its market was cancelled, so that it is not scored."""
CHANGED = ("status", "closed_at", "resolved_at")
"""The columns of a question that its resolution changes."""
READ = (*CHANGED, "exclusive")
"""The columns of a question that its resolution reads; the others hold long texts."""


def resolve_questions(*, at: datetime) -> int:
    """Closes, resolves or cancels questions whose markets did; returns how many were resolved or cancelled."""
    questions = list(_with_markets(Question.objects.to_resolve()))
    number = 0
    for first in range(0, len(questions), CHUNK):
        statuses = _update(questions[first : first + CHUNK], at).values()
        number += sum(status in FINAL for status in statuses)
    return number


def correct_question_outcomes(market: Market, *, at: datetime) -> list[int]:
    """Recomputes the final questions on a market whose resolution was reversed; returns the ids of those changed.

    A question that its markets no longer decide becomes open or closed again.
    """
    on_market = QuestionOption.objects.filter(outcome__market=market).values("question")
    questions = Question.objects.filter(pk__in=on_market, status__in=FINAL)
    return list(_update(_with_markets(questions), at))


def _with_markets(questions: QuestionQuerySet) -> QuestionQuerySet:
    """The questions in the order of their ids, with their options and the status and winner of each one's market."""
    options = QuestionOption.objects.select_related("outcome__market").only(
        "question", "happened", "outcome__market__status", "outcome__market__winning_outcome"
    )
    return questions.only(*READ).prefetch_related(Prefetch("options", options)).order_by("pk")


class _Change(NamedTuple):
    """A question as it was read, and the new values that its markets give it."""

    question: Question
    happened: HappenedByOption
    status: Question.Status
    closed_at: datetime | None
    resolved_at: datetime | None


def _update(questions: Iterable[Question], at: datetime) -> dict[int, Question.Status]:
    """The new status that their markets give questions, by id, stored with their outcomes in one transaction."""
    changes: dict[int, _Change] = {}
    columns: dict[int, FieldValues] = {}
    status_as_read: dict[int, str] = {}
    for question in questions:
        if change := _change(question, at):
            changes[question.pk] = change
            columns[question.pk] = (change.status, change.closed_at, change.resolved_at)
            status_as_read[question.pk] = question.status
    options_by_outcome: dict[bool | None, list[int]] = defaultdict(list)
    with transaction.atomic():
        stored = compare_and_swap(Question, columns, CHANGED, field="status", expected=status_as_read)
        for pk in stored:
            change = changes[pk]
            for option in change.question.options.all():
                options_by_outcome[change.happened.get(option.pk)].append(option.pk)
        for outcome, ids in options_by_outcome.items():
            QuestionOption.objects.filter(pk__in=ids).update(happened=outcome)
    return {pk: changes[pk].status for pk in stored}


def _change(question: Question, at: datetime) -> _Change | None:
    """The change of a question; None if its markets change nothing."""
    options = list(question.options.all())
    status, happened = _decided_status(question, options)
    stored = {option.pk: option.happened for option in options}
    if status == question.status and stored == dict.fromkeys(stored) | happened:
        return None
    closed_at = question.closed_at or (None if status == Question.Status.OPEN else at)
    return _Change(question, happened, status, closed_at, at if status in FINAL else None)


def _decided_status(question: Question, options: list[QuestionOption]) -> tuple[Question.Status, HappenedByOption]:
    """The status that its markets give a question and, if it is resolved, whether each option happened."""
    if (happened := happened_options(question, options)) is not None:
        return Question.Status.RESOLVED, happened
    status = Question.Status.CANCELLED
    for option in options:
        market = option.outcome.market if option.outcome else None
        if market is not None and market.status == Market.Status.ACTIVE:
            return Question.Status.OPEN, {}
        if market is not None and not market.is_final:
            status = Question.Status.CLOSED
    return status, {}


def happened_options(question: Question, options: list[QuestionOption]) -> HappenedByOption | None:
    """Each option with True if it happened; None while the markets leave it undecided or contradict each other.

    One winner decides an exclusive question, even while its other markets are open. If all markets resolved without a
    winner, the option "None of these" happened, where there is one. Options that are not exclusive are decided one by
    one: a cancelled market leaves its own option without an outcome, and the others as they are.
    """
    markets: dict[int, Market] = {}
    happened: HappenedByOption = {}
    for option in options:
        happened[option.pk] = False
        if option.outcome is not None:
            markets[option.pk] = option.outcome.market
            happened[option.pk] = option.outcome.market.winning_outcome_id == option.outcome_id
    if not question.exclusive:
        return _happened_independently(happened, markets)
    winners = sum(map(bool, happened.values()))
    none_of_these = happened.keys() - markets.keys()
    statuses = set(map(attrgetter("status"), markets.values()))
    if winners == 0 and none_of_these and statuses <= {Market.Status.RESOLVED}:
        return happened | dict.fromkeys(none_of_these, True)
    return happened if winners == 1 else None


def _happened_independently(happened: HappenedByOption, markets: Mapping[int, Market]) -> HappenedByOption | None:
    """Each independent option's outcome once all markets are final, unless all were cancelled."""
    cancelled = set()
    for option, market in markets.items():
        if not market.is_final:
            return None
        if market.status == Market.Status.CANCELLED:
            cancelled.add(option)
    return None if len(cancelled) == len(markets) else happened | dict.fromkeys(cancelled)


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
