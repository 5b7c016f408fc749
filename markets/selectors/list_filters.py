"""Conditions of lists: rows that changed since an instant, rows whose text contains every word of a search."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Q, QuerySet

from foundation.search_words import search_words
from markets.models import Market, Outcome, Question, QuestionOption

Rows = TypeVar("Rows", bound=QuerySet[Any])


def matching_markets(markets: QuerySet[Market], text: str) -> QuerySet[Market]:
    """Markets by their question."""
    return with_words(markets, text, "question")


def matching_questions(questions: QuerySet[Question], text: str) -> QuerySet[Question]:
    """Questions by their text or the name of an option."""
    return with_each_word(questions, text, _in_question)


def _in_question(word: str) -> Q:
    # A union, not two conditions: PostgreSQL would look up neither of them in its index.
    texts = Question.objects.filter(text__icontains=word).order_by().values("pk")
    options = QuestionOption.objects.filter(name__icontains=word).order_by().values("question")
    return Q(pk__in=texts.union(options))


def with_words(rows: Rows, text: str, *columns: str) -> Rows:
    """Rows of which one column or another contains each word."""
    return with_each_word(rows, text, lambda word: in_columns(word, columns))


def with_each_word(rows: Rows, text: str, condition: Callable[[str], Q]) -> Rows:
    """Rows that fulfil the condition of each word that a search looks for."""
    for word in search_words(text):
        rows = rows.filter(condition(word))
    return rows


def in_columns(word: str, columns: Iterable[str]) -> Q:
    """The condition that a column contains the word. A column of many related rows would be joined once per word."""
    contains = Q()
    for column in columns:
        contains |= Q(**{f"{column}__icontains": word})
    return contains


def market_changed(since: datetime) -> Q:
    """The market, or a price of one of its sides."""
    sides = Outcome.objects.filter(updated_at__gte=since).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=sides.values("market"))


def question_changed(since: datetime) -> Q:
    """The question, which changes with its options' outcomes, or a price of an option."""
    options = QuestionOption.objects.filter(outcome__updated_at__gte=since).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=options.values("question"))
