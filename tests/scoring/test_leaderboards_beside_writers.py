"""Leaderboards of forecasts while questions resolve: a question is on them whole, or not yet."""

from threading import Thread
from typing import Any

import pytest
from django.db import connection

from markets.models import Question
from scoring.services.forecast_panels import Selection, resolved_entries
from tests.factories import QuestionFactory, ask, end_question

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]
GPT = "gpt-5.1"


@pytest.mark.parametrize("table", ["markets_questionoption", "markets_questionentry"])
def test_question_that_resolves_between_two_reads_is_not_there_yet(table: str) -> None:
    questions = [QuestionFactory(), QuestionFactory()]
    for question in questions:
        ask(question, {GPT: [0.7, 0.3]})
    end_question(questions[0], "YES")
    written: list[Thread] = []

    def resolve_elsewhere(question: Question) -> None:
        end_question(question, "YES")
        connection.close()

    def resolve_after_read(execute: Any, sql: str, *arguments: Any) -> Any:
        result = execute(sql, *arguments)
        if not written and f'FROM "{table}"' in sql:
            written.append(Thread(target=resolve_elsewhere, args=[questions[1]]))
            written[0].start()
            written[0].join(20)
        return result

    with connection.execute_wrapper(resolve_after_read):
        (entry,) = resolved_entries(Selection("priced"))
    assert (entry.question, entry.forecasts) == (questions[0].pk, {GPT: [0.7, 0.3]})
    assert [len(entry.options) for entry in resolved_entries(Selection("priced"))] == [2, 2]
