"""`verify_ledger` beside jobs that write: it reads one state, so that what changes meanwhile is no violation."""

from threading import Thread
from typing import Any

import pytest
from django.db import connection

from agents.models import Agent, JournalEntry
from foundation.models import Run
from tests.commands import run
from tests.factories import WEEK, AgentFactory, bet

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


def test_bet_between_two_reads_is_no_violation() -> None:
    agent = AgentFactory()
    decision = bet(agent).decision_id
    run("compute_scores", WEEK)
    written: list[Thread] = []

    def bet_elsewhere() -> None:
        bet(Agent.objects.get(pk=agent.pk), week=2)
        connection.close()

    def write_after_first_read(execute: Any, sql: str, *arguments: Any) -> Any:
        result = execute(sql, *arguments)
        if not written and 'FROM "agents_agent"' in sql:
            written.append(Thread(target=bet_elsewhere))
            written[0].start()
            written[0].join(20)
        return result

    before = JournalEntry.objects.count()
    with connection.execute_wrapper(write_after_first_read):
        verified = run("verify_ledger", WEEK)
    assert JournalEntry.objects.count() == before + 1, "nothing was written meanwhile"
    assert [line["text"] for line in Run.objects.get(kind="verify_ledger").log] == [
        f"decision {decision} is completed and in no chain"
    ], "the factory's"
    assert verified["journal_rows"] == before
