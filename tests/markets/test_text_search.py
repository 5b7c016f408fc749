"""The search of markets and questions by trigrams on PostgreSQL."""

import pytest
from django.db import connection

from markets.models import Market, Question
from markets.selectors.list_filters import matching_markets, matching_questions

pytestmark = [pytest.mark.django_db, pytest.mark.postgres_only]


@pytest.mark.parametrize(
    ("rows", "index"),
    [
        (matching_markets(Market.objects.all(), "rain orsa"), "market_question_trigrams"),
        (matching_questions(Question.objects.all(), "rain orsa"), "question_text_trigrams"),
    ],
    ids=["markets", "questions"],
)
def test_words_are_looked_up_in_the_trigram_index(rows, index: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")  # an empty table is read whole otherwise
    assert index in rows.order_by().explain()
