"""Questions of one batch that can give each other away: of one event, or nested thresholds of one."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from markets.models import QuestionEntry, QuestionOption
from markets.thresholds import nested_chains


@dataclass(frozen=True, slots=True)
class SiblingCounts:
    """Batches and questions of question sets, and those with siblings in the same batch.

    siblings : questions that share their event with another question of their batch
    nested : siblings of which the venue's names say that one implies the other
    """

    batches: int = 0
    questions: int = 0
    batches_with_siblings: int = 0
    siblings: int = 0
    nested: int = 0


def sibling_counts(question_sets: Collection[int]) -> SiblingCounts:
    """The counts over these question sets (ids).

    An event is the venue's: questions of two events that depend on each other are not found.
    """
    entries = QuestionEntry.objects.order_by().filter(question_set__in=question_sets)
    groups = entries.values("question_set", "batch", "question__event_key").annotate(questions=Count("pk"))
    shared = list(
        groups.filter(questions__gt=1).values_list("question_set", "batch", "question__event_key", "questions")
    )
    with_siblings = {(question_set, batch) for question_set, batch, *_ in shared}
    return SiblingCounts(
        batches=entries.values("question_set", "batch").distinct().count(),
        questions=entries.count(),
        batches_with_siblings=len(with_siblings),
        siblings=sum(questions for *_, questions in shared),
        nested=_nested(entries.filter(question__event_key__in={event for *_, event, _ in shared})),
    )


def _nested(entries: QuerySet[QuestionEntry]) -> int:
    """The questions of single markets whose thresholds are nested in another's of their batch."""
    rows = QuestionOption.objects.filter(
        question__entries__in=entries, question__market__isnull=False, outcome__side="YES"
    )
    batch = ("question__entries__question_set", "question__entries__batch")
    market = ("outcome__market", "outcome__market__option", "outcome__market__event_title")
    names: dict[tuple[int, int, str], dict[int, str]] = defaultdict(dict)
    titles: dict[str, str] = {}
    rows = rows.filter(outcome__market__event_exclusive=False)
    for row in rows.values_list(*batch, "question__event_key", *market, named=True):
        event = row.question__event_key
        key = (row.question__entries__question_set, row.question__entries__batch, event)
        names[key][row.outcome__market] = row.outcome__market__option
        titles[event] = row.outcome__market__event_title
    nested = 0
    for key, options in names.items():
        nested += sum(map(len, nested_chains(titles[key[2]], options)))
    return nested
