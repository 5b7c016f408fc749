"""Reads from a replica: a second database that is behind the first shows which of the two was asked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import DEFAULT_DB_ALIAS, connections
from django.test import Client

from arena_site.middleware.replica_reads import REPLICA
from markets.models import Market
from scoring.services.trading_leaderboards import refresh_trading_leaderboards
from tests.databases import copy_test_database
from tests.factories import WEEK, AgentFactory, MarketFactory

pytestmark = pytest.mark.sqlite_only  # of which a copy is a file
LEADERBOARD = "/api/v1/leaderboard/"


@pytest.fixture(scope="module")
def migrated(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the migrated database, copied before a test's transaction begins."""
    file = tmp_path_factory.mktemp("replica") / "replica.sqlite3"
    with django_db_blocker.unblock():
        assert copy_test_database(file)
    return file


@pytest.fixture
def behind(migrated: Path, db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of a site whose replica lacks all that the test stores."""
    replica = connections[DEFAULT_DB_ALIAS].copy()  # with this alias, since the test case forbids any other
    replica.settings_dict["NAME"] = str(migrated)
    monkeypatch.setitem(connections.settings, REPLICA, replica.settings_dict)
    connections[REPLICA] = replica
    yield Client()
    connections[REPLICA].close()
    del connections[REPLICA]


@pytest.mark.parametrize("path", ["/markets/", "/api/v1/markets/", "/search/?q=unlikely"])
def test_pages_and_reads_of_the_api_come_from_the_replica(behind: Client, path: str) -> None:
    MarketFactory(question="Will the unlikely happen?")
    assert b"unlikely happen" not in behind.get(path).content
    assert Market.objects.exists()


def test_admin_reads_and_writes_the_primary(behind: Client) -> None:
    MarketFactory(question="Will the unlikely happen?")
    behind.force_login(User.objects.create_superuser("operator", password="x"))
    assert b"unlikely happen" in behind.get("/admin/markets/market/").content


def test_a_late_answer_is_not_cached_under_the_newer_version(behind: Client) -> None:
    cache.clear()
    AgentFactory()
    refresh_trading_leaderboards(at=WEEK)
    late = behind.get(LEADERBOARD).json()
    with pytest.MonkeyPatch.context() as patched:
        patched.delitem(connections.settings, REPLICA)
        current = Client().get(LEADERBOARD).json()
    assert late != current
    assert behind.get(LEADERBOARD).json() == late
