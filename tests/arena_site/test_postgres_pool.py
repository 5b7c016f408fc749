"""Connections of the pool are taken again while their server keeps them, and replaced once it has ended them."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db.utils import ConnectionHandler

from arena_site import conf
from tests.clusters import eventually
from tests.databases import postgres_url

pytestmark = pytest.mark.django_db


@pytest.fixture
def pooled() -> Iterator[Any]:
    url = postgres_url()
    connection: Any = ConnectionHandler({"default": conf.database(url), "pooled": conf.database(url)})["pooled"]
    yield connection
    connection.close_pool()


def session(connection: Any) -> int:
    """The server's process that answers who takes a connection of the pool and gives it back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        pid = int(cursor.fetchone()[0])
    connection.close()
    return pid


def end(pid: int) -> None:
    """As an operator ends a session, and as the server does when it restarts."""
    with psycopg.connect(postgres_url(), autocommit=True) as operator:
        operator.execute("SELECT pg_terminate_backend(%s)", [pid])
        there = "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = %s"
        assert eventually(lambda: operator.execute(there, [pid]).fetchone()[0], patience_s=10)  # type: ignore[index]


def test_a_connection_is_taken_again(pooled: Any) -> None:
    assert len({session(pooled) for _ in range(5)}) == 1


def test_one_that_the_server_ended_is_replaced_before_anybody_sees_it(pooled: Any) -> None:
    first = session(pooled)
    end(first)
    assert session(pooled) != first


def test_all_that_the_server_ended_are_replaced(pooled: Any) -> None:
    session(pooled)  # opens the pool
    taken = [pooled.pool.getconn() for _ in range(4)]
    pids = {int(connection.info.backend_pid) for connection in taken}
    for connection in taken:
        pooled.pool.putconn(connection)
    for pid in pids:
        end(pid)
    assert len(pids) == 4
    assert not {session(pooled) for _ in range(8)} & pids


def test_a_word_from_the_server_is_no_reason_to_part(pooled: Any) -> None:
    first = session(pooled)
    with psycopg.connect(postgres_url(), autocommit=True) as another:
        taken = pooled.pool.getconn()
        taken.execute("LISTEN news")
        pooled.pool.putconn(taken)
        another.execute("NOTIFY news")
    assert session(pooled) == first
