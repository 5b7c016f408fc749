"""Settlement of several markets beside a purchase: no deadlock."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction

from agents.models import Settlement
from agents.services import ledger
from agents.services.resolutions import Resolution
from agents.services.settlement import settle_markets
from scoring.exports.verification.ledger_audit import violations_about
from tests.factories import WEEK, AgentFactory, MarketFactory, bet

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres_only]


def wait_for_waiting_session() -> None:
    """Returns as soon as another session of this database waits for a lock."""
    with connection.cursor() as cursor:
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"
        for _ in range(100_000):
            cursor.execute(waiting)
            if cursor.fetchone() != (0,):
                return
    raise AssertionError("nothing waits")


def test_owner_of_one_market_buys_another_that_is_settled_with_it() -> None:
    agent, held_market, new = AgentFactory(), MarketFactory(), MarketFactory()
    bet(agent, held_market)
    resolutions = {market: Resolution(market.outcomes.get(side="YES")) for market in (new, held_market)}

    def settle() -> dict[int, int]:
        try:
            return settle_markets(resolutions, at=WEEK + timedelta(days=30))
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            ledger.lock_agent(agent.pk)
            settling = pool.submit(settle)
            wait_for_waiting_session()
            bet(agent, new, amount="400.00", week=2)
        assert settling.result(20) == {held_market.pk: 1, new.pk: 1}
    assert Settlement.objects.count() == 2
    agent.refresh_from_db()
    assert agent.cash == Decimal("9100.00") + sum(Settlement.objects.values_list("payout", flat=True))
    assert violations_about("accounts") == []
