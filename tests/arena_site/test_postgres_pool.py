"""Pooled PostgreSQL connections: reused while open, replaced once the server has ended them."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db.utils import ConnectionHandler

from arena_site import conf
from tests.databases import postgres_url
from tests.faults.clusters import eventually

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def pooled() -> Iterator[Any]:
    url = postgres_url()
    connection: Any = ConnectionHandler({"default": conf.database(url), "pooled": conf.database(url)})["pooled"]
    yield connection
    connection.close_pool()


def session(connection: Any) -> int:
    """The server process of a connection that is checked out and returned."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = int(cursor.fetchone()[0])
    connection.close()
    return pid


def end(pid: int) -> None:
    """Ends a session, as an operator does and as a restart of the server does."""
    with psycopg.connect(postgres_url(), autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(%s)", [pid])
        is_gone = "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s"
        assert eventually(lambda: operator.execute(is_gone, [pid]).fetchone()[0], patience_s=10)  # type: ignore[index]


def test_pooled_connection_is_reused(pooled: Any) -> None:
    assert len({session(pooled) for _ in range(5)}) == 1


def test_connection_ended_by_the_server_is_replaced_at_checkout(pooled: Any) -> None:
    first = session(pooled)
    end(first)
    assert session(pooled) != first


def test_all_ended_connections_are_replaced(pooled: Any) -> None:
    session(pooled)  # opens the pool
    connections = [pooled.pool.getconn() for _ in range(4)]
    pids = {int(connection.info.backend_pid) for connection in connections}
    for connection in connections:
        pooled.pool.putconn(connection)
    for pid in pids:
        end(pid)
    assert len(pids) == 4
    assert not {session(pooled) for _ in range(8)} & pids


def test_pending_notification_keeps_the_connection(pooled: Any) -> None:
    first = session(pooled)
    with psycopg.connect(postgres_url(), autocommit=True) as another:
        connection = pooled.pool.getconn()
        connection.execute("LISTEN news")
        pooled.pool.putconn(connection)
        another.execute("NOTIFY news")
    assert session(pooled) == first
