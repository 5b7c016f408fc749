"""Reads that take too long: a 503 in time, and the statement ended with it."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from arena_site.middleware import read_deadlines
from tests.problems import problem

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT_S, PATIENCE_S = 0.3, 5
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


class _Statements:
    """Replaces the statements that read a table, and counts those that came back."""

    def __init__(self, table: str, statement: str) -> None:
        self.table, self.statement, self.begun = table, statement, 0

    def __call__(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT") and f'FROM "{self.table}"' in sql:
            self.begun += 1
            return execute(self.statement, (), False, context)
        return execute(sql, params, many, context)


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Statements]:
    """Every read of the markets never ends by itself; reads may take a third of a second."""
    monkeypatch.setattr(read_deadlines, "MAX_READ_S", LIMIT_S)
    statements = _Statements("markets_market", ENDLESS)
    with connection.execute_wrapper(statements):
        yield statements


@pytest.mark.parametrize("path", ["/api/v1/markets/", "/api/v1/markets/?search=e&format=csv"])
def test_slow_read_of_the_api_is_a_problem_and_its_statement_ends(client: Client, endless: Any, path: str) -> None:
    began = time.monotonic()
    answer = client.get(path)
    assert time.monotonic() - began < PATIENCE_S
    assert "took longer than 8 seconds" in problem(answer, 503)["detail"]
    assert answer["Retry-After"] == "5"
    assert endless.begun == 1


@pytest.mark.parametrize("path", ["/markets/?q=e", "/search/?q=e", "/admin/markets/market/"])
def test_slow_page_is_a_plain_503(client: Client, endless: Any, path: str) -> None:
    client.force_login(User.objects.create_superuser("operator", password="x"))
    answer = client.get(path)
    assert answer.status_code == 503
    assert answer["Content-Type"] == "text/html; charset=utf-8"
    assert "took too long" in answer.content.decode()
    assert endless.begun == 1


def test_many_quick_statements_end_in_time_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_deadlines, "MAX_READ_S", 0)
    assert "took longer" in problem(client.get("/api/v1/markets/"), 503)["detail"]


def test_connection_serves_the_next_read(client: Client, endless: Any) -> None:
    assert client.get("/api/v1/markets/").status_code == 503
    assert client.get("/api/v1/cohorts/").status_code == 200


def test_other_threads_and_writes_have_no_deadline(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_deadlines, "MAX_READ_S", 0)
    statuses = []

    def work() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            statuses.append(cursor.fetchone()[0])
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert statuses == [1]
    assert client.post("/admin/login/", {"username": "x", "password": "y"}).status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
