"""Rate limits per client over all processes, and the limit on failed logins."""

import subprocess
import sys
import time
from base64 import b32decode
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import time_machine
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django_otp.oath import totp

from arena_site import conf
from arena_site.middleware.limits import remaining, window_end
from arena_site.models import AuditEntry
from arena_site.operations.alert_watch import watch_alerts
from foundation.models import Alert
from tests.databases import PROJECT
from tests.factories import WEEK
from tests.problems import problem

pytestmark = pytest.mark.django_db
NOW = WEEK.timestamp() + 20
"""Twenty seconds into a minute."""


COUNT = """
import sys
import time
from django.conf import settings
from arena_site import conf
settings.configure(CACHES={"limits": conf.cache(sys.argv[1])})
from arena_site.middleware.limits import add_to_count
for _ in range(20):
    add_to_count("api", "203.0.113.1", 1, ends=int(sys.argv[2]))
"""
"""Twenty requests of a client, counted by a process of their own."""


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
    "/static/arena/arena.css",
    "/", "/feeds/decisions.atom", "/data/", "/data/none.zip", "/robots.txt", "/sitemap.xml", "/nonsense", "/api/docs/",
    "/api/schema/", "/api/nonsense/", "/api/v1/", "/api/v1/cohorts/99/", "/api/v1/agents/?mood=bad",
    "/api/v1/performance/", "/api/v1/exports/", "/api/v1/leaderboard/",
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


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/admin/login/"])
def test_health_and_admin_have_no_limit(client: Client, settings: Any, at: Any, path: str) -> None:
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


@pytest.mark.redis
def test_processes_share_one_limit_where_a_server_counts(redis: None, settings: Any) -> None:
    ends = window_end(time.time() + 3600, 60)
    command = [sys.executable, "-c", COUNT, settings.CACHES["limits"]["LOCATION"], str(ends)]
    counts = [subprocess.Popen(command, cwd=PROJECT) for _ in range(2)]
    assert [process.wait(60) for process in counts] == [0, 0]
    assert remaining("api", [("203.0.113.1", 1)], 60, ends=ends) == 19


def test_without_its_server_nobody_is_refused(client: Client, settings: Any, at: Any) -> None:
    settings.ARENA_API_RATE = 1
    settings.CACHES = settings.CACHES | {"limits": conf.cache("redis://127.0.0.1:1/0")}
    assert [read(client, "203.0.113.1").status_code for _ in range(3)] == [200] * 3


def test_counting_asks_no_database(client: Client, settings: Any, at: Any) -> None:
    settings.ARENA_API_RATE = 1
    read(client, "203.0.113.1")
    with CaptureQueriesContext(connection) as captured:
        assert read(client, "203.0.113.1").status_code == 429
    assert len(captured) == 0


def test_ipv6_counts_by_the_network_of_a_customer_too(client: Client, settings: Any, at: Any) -> None:
    settings.ARENA_API_RATE = 2
    statuses = [read(client, f"2001:db8:1:{subnet}::1").status_code for subnet in range(12)]
    assert statuses == [200] * 8 + [429] * 4
    assert read(client, "2001:db8:2::1").status_code == 200


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


def test_strangers_lock_no_account_out_where_it_has_logged_in(operator: User, at: Any) -> None:
    browser = Client()
    assert login(browser, "correct horse", "203.0.113.9").status_code == 302
    tries = [login(Client(), "guess", f"192.0.2.{number}").status_code for number in range(40)]
    assert tries == [200] * 30 + [429] * 10
    assert login(Client(), "correct horse", "203.0.113.9").status_code == 429
    assert login(browser, "correct horse", "198.51.100.7").status_code == 302
    assert login(browser, "wrong", "198.51.100.7", name="another").status_code == 200


def test_logins_and_failures_are_in_the_audit_log_up_to_the_limit(operator: User, at: Any) -> None:
    login(Client(), "correct horse", "203.0.113.9")
    for _ in range(12):
        login(Client(), "guess", "192.0.2.66")
    login(Client(), "guess", "192.0.2.67", name="hunter2")
    entries = AuditEntry.objects.filter(action="login").order_by("pk").values_list("by", "result", "target")
    assert list(entries) == [
        ("operator", "done", "203.0.113.9"),
        *[("operator", "refused", "192.0.2.66")] * 10,
        ("(no such account)", "refused", "192.0.2.67"),
    ]
    with CaptureQueriesContext(connection) as captured:
        assert login(Client(), "guess", "192.0.2.66").status_code == 429
    assert not [query for query in captured if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))]


def test_many_failed_logins_are_an_alert(operator: User, at: Any) -> None:
    def alerts() -> int:
        watch_alerts(now=timezone.now())
        return Alert.objects.open().filter(kind="login-failures").count()

    for number in range(19):
        login(Client(), "guess", f"192.0.2.{number}")
    assert alerts() == 0
    login(Client(), "guess", "192.0.2.99")
    assert alerts() == 1
    at.shift(3700)
    assert alerts() == 0


# --- the second factor -----------------------------------------------------------------------------------


def second_factor(capsys: pytest.CaptureFixture[str]) -> tuple[bytes, list[str]]:
    """The key of the operator's authenticator and the recovery codes, as the command prints them."""
    call_command("add_second_factor", "operator")
    address, codes = capsys.readouterr().out.splitlines()
    secret = parse_qs(urlsplit(address.split()[-1]).query)["secret"][0]
    return b32decode(secret), codes.rpartition(": ")[2].split()


def with_code(client: Client, code: str) -> int:
    form = {"username": "operator", "password": "correct horse", "otp_token": code}
    client.post("/admin/login/", form, REMOTE_ADDR="203.0.113.9")
    return client.get("/admin/").status_code


def test_account_with_a_second_factor_enters_with_its_code_alone(
    operator: User, at: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    earlier = Client()
    assert with_code(earlier, "") == 200, "it has none yet"
    key, codes = second_factor(capsys)
    assert earlier.get("/admin/").status_code == 302, "its session was begun without"
    code = f"{totp(key):06}"
    assert [with_code(Client(), wrong) for wrong in ("", "000000", "nonsense")] == [302] * 3
    at.shift(60)  # after a wrong code the next is heard a moment later
    code = f"{totp(key):06}"
    assert with_code(Client(), code) == 200
    assert with_code(Client(), code) == 302, "a code holds once"
    assert [with_code(Client(), codes[0]) for _ in range(2)] == [200, 302]
    assert AuditEntry.objects.filter(action="add-second-factor", target="operator").exists()


def test_required_second_factor_lets_nobody_in_without(
    operator: User, settings: Any, at: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.ARENA_ADMIN_2FA = "required"
    assert with_code(Client(), "") == 302
    assert "needs a second factor" in login(Client(), "correct horse", "203.0.113.8").content.decode()
    assert with_code(Client(), f"{totp(second_factor(capsys)[0]):06}") == 200
