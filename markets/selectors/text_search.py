"""Rows whose text contains every word of a search, whatever its case and the words' order."""

from typing import Any, TypeVar

from django.db.models import Q, QuerySet

from markets.models import Market, Question

Rows = TypeVar("Rows", bound=QuerySet[Any])


def matching_markets(markets: QuerySet[Market], text: str) -> QuerySet[Market]:
    """Markets by their question."""
    return with_words(markets, text, "question")


def matching_questions(questions: QuerySet[Question], text: str) -> QuerySet[Question]:
    """Questions by their text."""
    return with_words(questions, text, "text")


def with_words(rows: Rows, text: str, *columns: str) -> Rows:
    """Rows of which one column or another contains each word."""
    for word in text.split():
        contains = Q()
        for column in columns:
            contains |= Q(**{f"{column}__icontains": word})
        rows = rows.filter(contains)
    return rows
