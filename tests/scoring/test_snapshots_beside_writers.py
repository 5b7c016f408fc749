"""`take_snapshots` beside `run_decisions`: a trade between two of its reads changes no earlier snapshot."""

from datetime import timedelta
from decimal import Decimal
from threading import Thread
from typing import Any

import pytest
from django.db import connection

from agents.models import Agent
from scoring.models import Snapshot
from tests.commands import run
from tests.factories import WEEK, AgentFactory, bet

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


def test_bet_between_two_reads_moves_no_cash_of_the_instant_before() -> None:
    agent = AgentFactory()
    written: list[Thread] = []

    def bet_elsewhere() -> None:
        bet(Agent.objects.get(pk=agent.pk), week=2)
        connection.close()

    def write_after_agents_are_read(execute: Any, sql: str, *arguments: Any) -> Any:
        result = execute(sql, *arguments)
        if not written and 'FROM "agents_agent"' in sql and "scoring_snapshot" in sql:
            written.append(Thread(target=bet_elsewhere))
            written[0].start()
            written[0].join(20)
        return result

    with connection.execute_wrapper(write_after_agents_are_read):
        run("take_snapshots", WEEK + timedelta(minutes=10))
    assert Agent.objects.get(pk=agent.pk).cash == Decimal("9500.00"), "nothing was written meanwhile"
    assert Snapshot.objects.get().cash == Decimal("10000.00")
