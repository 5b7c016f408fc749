"""Connections to PostgreSQL: used again while open, replaced once the server has ended them."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.utils import ConnectionHandler

from arena_site import conf
from foundation.database_connection import check_connection
from tests.databases import postgres_url
from tests.faults.clusters import eventually

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.slow, pytest.mark.thorough]


@pytest.fixture
def connection() -> Iterator[Any]:
    """A connection of its own, as this thread's default one."""
    suite, url = connections[DEFAULT_DB_ALIAS], postgres_url()
    connections[DEFAULT_DB_ALIAS] = own = ConnectionHandler({"default": conf.database(url)})["default"]
    yield own
    own.close()
    connections[DEFAULT_DB_ALIAS] = suite


def session(connection: Any) -> int:
    """The server process of a request, which checks the connection first."""
    check_connection()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def end(pid: int) -> None:
    """Ends a session, as an operator does and as a restart of the server does."""
    with psycopg.connect(postgres_url(), autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(%s)", [pid])
        is_gone = "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s"
        assert eventually(lambda: operator.execute(is_gone, [pid]).fetchone()[0], patience_s=10)  # type: ignore[index]


def test_connection_is_used_again(connection: Any) -> None:
    assert len({session(connection) for _ in range(5)}) == 1


def test_connection_ended_by_the_server_is_replaced(connection: Any) -> None:
    first = session(connection)
    end(first)
    assert session(connection) != first


def test_connection_that_failed_is_replaced(connection: Any) -> None:
    first = session(connection)
    end(first)
    with pytest.raises(psycopg.OperationalError):
        connection.connection.execute("SELECT 1")
    assert session(connection) != first


def test_job_gets_another_connection_too(connection: Any) -> None:
    """Between two jobs a worker lets Django check its connections."""
    first = session(connection)
    end(first)
    connection.close_if_unusable_or_obsolete()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() != (first,)


def test_pending_notification_keeps_the_connection(connection: Any) -> None:
    first = session(connection)
    with psycopg.connect(postgres_url(), autocommit=True) as another:
        connection.connection.execute("LISTEN news")
        another.execute("NOTIFY news")
    assert session(connection) == first
