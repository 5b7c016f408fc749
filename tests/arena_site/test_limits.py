"""Rate limits per client over all processes, and the limit on failed logins."""

from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from arena_site.middleware import limits
from arena_site.middleware.limits import SharedLimit, increment, short_lock_timeout
from arena_site.models import RateLimitCounter
from tests.factories import WEEK
from tests.problems import problem

pytestmark = pytest.mark.django_db
NOW = WEEK.timestamp() + 20
"""Twenty seconds into a minute."""


@pytest.fixture(autouse=True)
def _fresh_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "API_LIMIT", SharedLimit("api", 60))


@pytest.fixture
def at() -> Iterator[Any]:
    with time_machine.travel(NOW, tick=False) as coordinates:
        yield coordinates


def read(client: Client, address: str, **headers: str) -> Any:
    return client.get("/api/v1/families/", REMOTE_ADDR=address, headers=headers)


def test_client_over_its_rate_gets_retry_after(client: Client, settings: Any, at: Any) -> None:
    settings.ARENA_API_RATE = 3
    assert [read(client, "203.0.113.1").status_code for _ in range(4)] == [200, 200, 200, 429]
    refused = read(client, "203.0.113.1", origin="https://notebook.example")
    assert refused["Retry-After"] == "40"
    assert problem(refused, 429)["detail"] == "Too many requests. Try again in 40 seconds."
    assert refused["Access-Control-Allow-Origin"] == "*"
    assert read(client, "203.0.113.2").status_code == 200
    at.move_to(NOW + 40)
    assert read(client, "203.0.113.1").status_code == 200


COUNTED = (
    "/", "/feeds/decisions.atom", "/data/", "/data/none.zip", "/robots.txt", "/sitemap.xml", "/nonsense", "/api/docs/",
    "/api/schema/", "/api/nonsense/", "/api/v1/", "/api/v1/cohorts/99/", "/api/v1/agents/?mood=bad",
    "/api/v1/performance/", "/api/v1/exports/1/file/", "/api/v1/leaderboard/",
)  # fmt: skip


@pytest.mark.parametrize("path", COUNTED)
def test_each_response_states_what_is_left_and_counts(client: Client, settings: Any, at: Any, path: str) -> None:
    settings.ARENA_API_RATE = 2
    answers = [client.get(path, REMOTE_ADDR="203.0.113.1") for _ in range(3)]
    assert [answer["RateLimit-Policy"] for answer in answers] == ['"client";q=2;w=60'] * 3
    assert [answer["RateLimit"] for answer in answers] == [f'"client";r={remaining};t=40' for remaining in (1, 0, 0)]
    assert [answer.status_code == 429 for answer in answers] == [False, False, True]
    assert answers[2]["Retry-After"] == "40"
    assert b"40 seconds" in answers[2].content


def test_not_modified_counts_and_states_what_is_left(client: Client, settings: Any, at: Any) -> None:
    settings.ARENA_API_RATE = 9
    etag = client.get("/api/v1/families/")["ETag"]
    again = client.get("/api/v1/families/", headers={"if-none-match": etag})
    assert (again.status_code, again["RateLimit"]) == (304, '"client";r=7;t=40')


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/static/arena/arena.css", "/admin/login/"])
def test_health_static_files_and_admin_have_no_limit(client: Client, settings: Any, at: Any, path: str) -> None:
    settings.ARENA_API_RATE = 2
    assert [client.get(path).status_code for _ in range(3)] == [200, 200, 200]
    assert "RateLimit" not in client.get(path)


def test_rate_of_zero_is_no_limit(client: Client, settings: Any, at: Any) -> None:
    settings.ARENA_API_RATE = 0
    assert [client.get("/api/v1/").has_header("RateLimit") for _ in range(3)] == [False] * 3


def test_clients_behind_one_proxy_have_separate_rates(client: Client, settings: Any, at: Any) -> None:
    settings.ARENA_API_RATE, settings.ARENA_TRUSTED_PROXIES = 2, [ip_network("10.0.0.1")]
    for invented in range(5):
        last = read(client, "10.0.0.1", x_forwarded_for=f"192.0.2.{invented}, 203.0.113.1")
    assert last.status_code == 429
    assert read(client, "10.0.0.1", x_forwarded_for="203.0.113.2").status_code == 200


def test_processes_share_one_limit_and_reserve_ever_smaller_parts(at: Any) -> None:
    processes = [SharedLimit("api", 60) for _ in range(4)]
    granted = [process.acquire("somebody", 300, now=NOW) is None for _ in range(200) for process in processes]
    assert 240 <= sum(granted) <= 300
    one = SharedLimit("api", 60)
    assert sum(one.acquire("another", 300, now=NOW) is None for _ in range(400)) == 300
    assert one.acquire("another", 300, now=NOW) == 40
    assert one.acquire("another", 300, now=NOW + 40) is None


def test_counting_needs_one_write_for_many_requests() -> None:
    def writes(captured: CaptureQueriesContext) -> int:
        return sum(not query["sql"].startswith("PRAGMA") for query in captured.captured_queries)

    limit = SharedLimit("api", 60)
    with CaptureQueriesContext(connection) as captured_queries:
        assert [limit.acquire("somebody", 320, now=NOW) for _ in range(20)] == [None] * 20
    assert writes(captured_queries) == 2, "one reservation and the deletion of old windows"
    with CaptureQueriesContext(connection) as captured_queries:
        assert limit.acquire("another", 320, now=NOW) is None
        before = len(captured_queries)
        assert [limit.acquire("another", 320, now=NOW) for _ in range(19)] == [None] * 19
        assert len(captured_queries) == before, "reserved requests need no query"
    with CaptureQueriesContext(connection) as captured_queries:
        for _ in range(400):
            limit.acquire("somebody", 320, now=NOW)
        assert writes(captured_queries) < 80
        before = len(captured_queries)
        for _ in range(400):
            assert limit.acquire("somebody", 320, now=NOW) == 40
        assert len(captured_queries) == before, "requests over the limit need no query"


def test_counters_of_ended_windows_are_deleted() -> None:
    increment("api", "early", 1, ends=60)
    increment("login", "early", 1, ends=60)
    assert [increment("api", "late", 2, ends=120), increment("api", "late", 3, ends=120)] == [2, 5]
    counters = RateLimitCounter.objects.order_by("pk").values_list("limit_name", "client", "count")
    assert list(counters) == [("login", "early", 1), ("api", "late", 5)]


@pytest.mark.sqlite_only
def test_short_lock_timeout_holds_inside_its_block_only() -> None:
    def busy_timeout() -> int:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout")
            return cursor.fetchone()[0]

    def fail() -> None:
        with short_lock_timeout():
            inside.append(busy_timeout())
            raise DatabaseError("database is locked")

    inside: list[int] = []
    default = busy_timeout()
    with pytest.raises(DatabaseError):
        fail()
    assert inside == [limits.SQLITE_LOCK_TIMEOUT_MS]
    assert busy_timeout() == default > limits.SQLITE_LOCK_TIMEOUT_MS


# --- the admin's login -----------------------------------------------------------------------------------


@pytest.fixture
def operator() -> User:
    return User.objects.create_superuser("operator", password="correct horse")


def login(client: Client, password: str, address: str, name: str = "operator", **headers: str) -> Any:
    form = {"username": name, "password": password}
    return client.post("/admin/login/", form, REMOTE_ADDR=address, headers=headers)


def test_another_client_can_not_lock_the_operator_out(operator: User, settings: Any, at: Any) -> None:
    settings.ARENA_TRUSTED_PROXIES = [ip_network("10.0.0.1")]
    attacker, operators = "192.0.2.66", "203.0.113.9"
    tries = [login(Client(), "guess", "10.0.0.1", x_forwarded_for=f"{operators}, {attacker}") for _ in range(15)]
    assert [answer.status_code for answer in tries] == [200] * 10 + [429] * 5
    assert login(Client(), "correct horse", "10.0.0.1", x_forwarded_for=operators).status_code == 302
    throttled = login(Client(), "correct horse", "10.0.0.1", x_forwarded_for=attacker)
    assert (throttled.status_code, throttled["Retry-After"]) == (429, "880")
    assert "Try again in 15 minutes" in throttled.content.decode()
    at.move_to(NOW + 880)
    assert login(Client(), "correct horse", "10.0.0.1", x_forwarded_for=attacker).status_code == 302


def test_failures_of_one_client_count_over_all_accounts(operator: User, at: Any) -> None:
    answers = [login(Client(), "guess", "192.0.2.66", name=f"name-{n}").status_code for n in range(12)]
    assert answers == [200] * 10 + [429] * 2


def test_successful_logins_neither_count_nor_reset_failures(operator: User, at: Any) -> None:
    for _ in range(12):
        assert login(Client(), "correct horse", "203.0.113.9").status_code == 302
    for _ in range(9):
        assert login(Client(), "wrong", "203.0.113.9").status_code == 200
    assert login(Client(), "correct horse", "203.0.113.9").status_code == 302
    assert [login(Client(), "wrong", "203.0.113.9").status_code for _ in range(2)] == [200, 429]


def test_login_page_is_shown_to_a_throttled_client(client: Client, operator: User, at: Any) -> None:
    for _ in range(11):
        login(client, "wrong", "203.0.113.9")
    assert client.get("/admin/login/", REMOTE_ADDR="203.0.113.9").status_code == 200


@pytest.mark.parametrize("onward", ["https://elsewhere.example/", "//elsewhere.example", "javascript:alert(1)", ""])
def test_login_with_a_foreign_address_to_go_on_to_leads_to_the_dashboard(
    client: Client, operator: User, onward: str
) -> None:
    form = {"username": "operator", "password": "correct horse", "next": onward}
    answer = client.post(f"/admin/login/?{urlencode({'next': onward})}", form, follow=True)
    assert answer.redirect_chain == [("/admin/", 302)]
    assert answer.status_code == 200
