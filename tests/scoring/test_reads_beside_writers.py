"""Reads beside jobs that write: each sees one state, so that what changes meanwhile changes nothing in it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from django.db import connection

from agents.models import Agent, JournalEntry
from foundation.models import Run
from scoring.models import Leaderboard, Snapshot
from scoring.selectors.competition import competition_index
from scoring.selectors.forecast_panels import Selection, resolved_entries
from scoring.services.trading_leaderboards import refresh_trading_leaderboards
from tests.commands import run
from tests.factories import WEEK, AgentFactory, QuestionFactory, ask, bet, chain_all, end_question

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


@contextmanager
def written_after_read(write: Callable[[], object], *parts: str) -> Iterator[None]:
    """Another session writes, once, after the first statement that holds all these parts."""
    writers: list[Thread] = []

    def write_and_close() -> None:
        write()
        connection.close()

    def execute_and_write(execute: Any, sql: str, *arguments: Any) -> Any:
        result = execute(sql, *arguments)
        if not writers and all(part in sql for part in parts):
            writers.append(Thread(target=write_and_close))
            writers[0].start()
            writers[0].join(20)
        return result

    with connection.execute_wrapper(execute_and_write):
        yield
    assert writers, "nothing was written meanwhile"


def test_bet_between_two_reads_is_no_violation() -> None:
    agent = AgentFactory()
    bet(agent)
    chain_all()
    run("compute_scores", WEEK)
    before = JournalEntry.objects.count()
    with written_after_read(lambda: bet(Agent.objects.get(pk=agent.pk), week=2), 'FROM "agents_agent"'):
        verified = run("verify_ledger", WEEK)
    assert JournalEntry.objects.count() == before + 1
    assert Run.objects.get(kind="verify_ledger").log == []
    assert verified["journal_rows"] == before


def test_cohort_that_starts_between_two_reads_is_no_fault() -> None:
    AgentFactory()
    with written_after_read(AgentFactory, 'FROM "cohorts_cohort"'):
        index = competition_index()
    assert [agent.cohort.number for agent in index.agents] == [1]


def test_cohort_that_starts_while_boards_are_computed_is_on_none_yet() -> None:
    AgentFactory()
    with written_after_read(AgentFactory, 'FROM "agents_agent"'):
        refresh_trading_leaderboards(at=WEEK)
    assert [len(board.entries) for board in Leaderboard.objects.filter(methodology="")] == [1]


def test_bet_between_two_reads_moves_no_cash_of_the_instant_before() -> None:
    agent = AgentFactory()
    with written_after_read(
        lambda: bet(Agent.objects.get(pk=agent.pk), week=2), 'FROM "agents_agent"', "scoring_snapshot"
    ):
        run("take_snapshots", WEEK + timedelta(minutes=10))
    assert Agent.objects.get(pk=agent.pk).cash == Decimal("9500.00")
    assert Snapshot.objects.get().cash == Decimal("10000.00")


@pytest.mark.parametrize("table", ["markets_questionoption", "markets_questionentry"])
def test_question_that_resolves_between_two_reads_is_on_no_leaderboard_yet(table: str) -> None:
    questions = [QuestionFactory(), QuestionFactory()]
    for question in questions:
        ask(question, {"gpt-5.1": [0.7, 0.3]})
    end_question(questions[0], "YES")
    with written_after_read(lambda: end_question(questions[1], "YES"), f'FROM "{table}"'):
        (entry,) = resolved_entries(Selection("priced"))
    assert (entry.question, entry.forecasts) == (questions[0].pk, {"gpt-5.1": [0.7, 0.3]})
    assert [len(entry.options) for entry in resolved_entries(Selection("priced"))] == [2, 2]
