"""A snapshot pass asks the CLOB in batches and the database a fixed number of times, whatever the positions."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from markets.models import Outcome
from markets.sources import registry as clients
from scoring.models import Snapshot
from scoring.services.snapshots import take_snapshots
from tests.bulk_factories import Portfolios, create_portfolios
from tests.factories import chain_all
from tests.sandbox import Venue

pytestmark = pytest.mark.slow

MOST_QUERIES = 85
"""SQLite takes a few dozen rows to a statement; the same markets cost the same whoever holds them."""


def cost(portfolios: Portfolios) -> int:
    with clients.clob() as clob, CaptureQueriesContext(connection) as queries:
        report = take_snapshots(at=portfolios.at, clob=clob)
    assert report.snapshots == portfolios.agents
    return len(queries)


@pytest.fixture
def quoted(venue: Venue) -> Venue:
    venue.midpoints = _Everything()
    return venue


class _Everything(dict[str, str | None]):
    """A midpoint for whatever token is asked for."""

    def get(self, key: str, default: Any = None) -> str:
        return "0.41"

    def __getitem__(self, key: str) -> str:
        return "0.41"


@pytest.mark.thorough
def test_140_agents_with_4480_positions_cost_two_calls_and_a_bounded_number_of_queries(quoted: Venue) -> None:
    portfolios = create_portfolios(cohorts=20, positions=32)
    assert (portfolios.agents, portfolios.positions) == (140, 4480)
    assert cost(portfolios) <= MOST_QUERIES
    assert quoted.requests == ["POST /clob/midpoints", "POST /clob/books"]
    assert Snapshot.objects.count() == 140
    assert Outcome.objects.filter(side="YES", price="0.41").count() == portfolios.markets


def test_queries_do_not_grow_with_positions(quoted: Venue) -> None:
    """Six times the positions on the same markets, within what a few more rows to a statement explain."""
    with transaction.atomic():
        few = cost(create_portfolios(cohorts=2, positions=10))
        transaction.set_rollback(True)
    many = cost(create_portfolios(cohorts=4, positions=32))
    assert many - few <= 3


@pytest.mark.django_db
def test_the_crowd_is_a_ledger_that_proves() -> None:
    create_portfolios(cohorts=1, positions=5)
    chain_all()
    call_command("verify_ledger", json=True)


def test_a_second_pass_for_the_same_instant_takes_none(quoted: Venue) -> None:
    portfolios = create_portfolios(cohorts=1, positions=3)
    cost(portfolios)
    with clients.clob() as clob:
        assert take_snapshots(at=portfolios.at + timedelta(minutes=9), clob=clob).snapshots == 0
