"""Reads of the API: conditional requests, other origins, compression, selected fields, filters and errors."""

import gzip
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from agents.models import Trade
from arena_site.api import ENDPOINTS
from arena_site.middleware import delivery, last_change
from foundation.models import Run
from foundation.rest.viewsets import ReadOnlyViewSet
from tests.factories import WEEK, AgentFactory, CohortFactory, RunFactory, SnapshotFactory, bet, play_week
from tests.guards import guards_removed
from tests.problems import errors, problem
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

ROWS = sorted(name for name, view in ENDPOINTS.items() if issubclass(view, ReadOnlyViewSet))
READS = ["/api/v1/performance/", "/api/v1/cohorts/1/", "/api/v1/families/gpt-5.1/", "/api/schema/"]
"""Besides the lists, of which `test_api_matrix` asks the same."""
NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)


season = shared_rows(play_week)


@pytest.fixture(autouse=True)
def _quiet_refusals(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="django.request")


# --- conditional requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", READS)
def test_matching_etag_gets_304(season: None, client: Client, path: str) -> None:
    first = client.get(path)
    assert first["ETag"]
    assert first["Cache-Control"] == "no-cache"
    repeated = client.get(path, headers={"if-none-match": first["ETag"]})
    assert (repeated.status_code, repeated.content, repeated["ETag"]) == (304, b"", first["ETag"])
    foreign = client.get(path, headers={"if-none-match": first["ETag"], "origin": "https://notebook.example"})
    assert (foreign.status_code, foreign["Access-Control-Allow-Origin"]) == (304, "*")
    assert client.get(path, headers={"if-none-match": '"another"'}).content == first.content


@pytest.mark.parametrize("path", READS)
def test_head_has_the_headers_of_get(season: None, client: Client, path: str) -> None:
    head, get = client.head(path), client.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert {**head.headers} == {**get.headers}


@pytest.fixture
def last_job(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """The code is old, the week began long ago, and a job ended at twenty to twelve."""
    monkeypatch.setattr(last_change, "STARTED", WEEK)
    finished = NOON - timedelta(minutes=20, microseconds=400_000)
    RunFactory(finished_at=finished)
    return finished


def last_modified(client: Client, at: datetime = NOON) -> str | None:
    with time_machine.travel(at, tick=False):
        return client.get("/api/v1/families/").get("Last-Modified")


def test_last_modified_is_the_second_after_the_last_job(client: Client, last_job: datetime) -> None:
    assert last_modified(client) == "Wed, 06 May 2026 11:40:00 GMT"
    assert last_modified(client, last_job + timedelta(milliseconds=300)) is None, "that second may bring another"


def test_running_job_suppresses_last_modified(client: Client, last_job: datetime) -> None:
    hour_ago = NOON - timedelta(hours=1)
    RunFactory(status=Run.Status.RUNNING, started_at=hour_ago, heartbeat_at=NOON, finished_at=None)
    assert last_modified(client) is None
    later = NOON + timedelta(seconds=60)
    assert last_modified(client, later) == "Wed, 06 May 2026 12:00:01 GMT", "it may have changed rows until it died"


def test_operators_action_changes_last_modified(client: Client, last_job: datetime) -> None:
    user = User.objects.create_superuser("operator")
    LogEntry.objects.create(user=user, action_flag=CHANGE, object_repr="-", action_time=NOON - timedelta(seconds=90))
    assert last_modified(client) == "Wed, 06 May 2026 11:58:31 GMT"


def test_new_week_changes_last_modified(client: Client, last_job: datetime) -> None:
    assert last_modified(client, datetime(2026, 5, 10, 8, tzinfo=UTC)) == "Sun, 10 May 2026 00:00:01 GMT"


def test_if_modified_since_alone_gets_304(client: Client, last_job: datetime) -> None:
    def ask(since: str) -> int:
        with time_machine.travel(NOON, tick=False):
            return client.get("/api/v1/families/", headers={"if-modified-since": since}).status_code

    assert ask("Wed, 06 May 2026 11:40:00 GMT") == 304
    assert ask("Wed, 06 May 2026 11:39:59 GMT") == 200


# --- origins and compression --------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/v1/agents/", "/api/v1/agents/?mood=bad", "/api/v1/agents/9/", "/api/x/"])
def test_any_origin_may_read(client: Client, path: str) -> None:
    answer = client.get(path, headers={"origin": "https://notebook.example"})
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert {"ETag", "Retry-After", "Link"} <= set(answer["Access-Control-Expose-Headers"].split(", "))
    assert "Access-Control-Allow-Credentials" not in answer


def test_cors_preflight_is_answered(client: Client) -> None:
    headers = {"origin": "https://notebook.example", "access-control-request-method": "GET"}
    answer = client.options("/api/v1/agents/", headers=headers)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["Access-Control-Allow-Methods"] == "GET, HEAD, OPTIONS"
    assert "if-none-match" in answer["Access-Control-Allow-Headers"].split(", ")


@pytest.mark.parametrize("path", ["/", "/admin/login/", "/healthz"])
def test_only_the_api_allows_other_origins(client: Client, path: str) -> None:
    answer = client.get(path, headers={"origin": "https://notebook.example"})
    assert "Access-Control-Allow-Origin" not in answer


def test_public_responses_are_compressed(season: None, client: Client, admin_client: Client) -> None:
    def is_compressed(sender: Client, path: str) -> bool:
        answer = sender.get(path, headers={"accept-encoding": "gzip"})
        assert answer.status_code == 200
        return answer.get("Content-Encoding") == "gzip"

    assert is_compressed(client, "/api/v1/decisions/")
    assert is_compressed(client, "/")
    assert not is_compressed(client, "/admin/login/")
    assert not is_compressed(admin_client, "/admin/")


def test_responses_that_vary_by_cookie_are_not_compressed() -> None:
    """A page that repeats what was asked beside a secret tells the secret by its length."""

    def is_compressed(answer: HttpResponse) -> bool:
        request = RequestFactory().get("/somewhere/", headers={"accept-encoding": "gzip"})
        return "Content-Encoding" in delivery.Compression(lambda _: answer)(request)

    long = b"text " * 200
    setting = HttpResponse(long)
    setting.set_cookie("sessionid", "secret")
    assert is_compressed(HttpResponse(long))
    assert not is_compressed(setting)
    assert not is_compressed(HttpResponse(long, headers={"Vary": "Accept-Encoding, Cookie"}))


def test_compressed_response_has_the_same_etag(season: None, client: Client) -> None:
    plain = client.get("/api/v1/decisions/")
    compressed = client.get("/api/v1/decisions/", headers={"accept-encoding": "gzip"})
    assert json.loads(gzip.decompress(compressed.content)) == plain.json()
    assert compressed["ETag"].removeprefix("W/") == plain["ETag"]  # weak: the bytes differ
    assert "Accept-Encoding" in compressed["Vary"]


# --- selected fields -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fields", "saved"),
    [("markets", "id,question", 1), ("agents", "id,cash", 4), ("cohorts", "number,status", 2)],
)
def test_unselected_fields_save_queries(season: None, client: Client, name: str, fields: str, saved: int) -> None:
    def queries(**query: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/api/v1/{name}/", query).status_code == 200
        return len(captured)

    queries()  # reads the competition index, once per version
    assert queries(fields=fields) == queries() - saved


def test_unselected_costs_are_not_summed(season: None, client: Client) -> None:
    with CaptureQueriesContext(connection) as captured:
        client.get("/api/v1/decisions/", {"fields": "id,status"})
    assert not any("modelcall" in query["sql"] for query in captured)


# --- every filter, and half-open windows ------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        lambda day: f"{day:%Y-%m-%d}",
        lambda day: f"{day:%Y-%m-%d}T00:00:00Z",
        lambda day: f"{day:%Y-%m-%d}T00:00Z",
        lambda day: f"{day:%Y-%m-%d} 00:00:00+00:00",
        lambda day: f"{day:%Y-%m-%d}T00:00:00.000000+00:00",
        lambda day: f"{day:%Y-%m-%d}T02:00:00 02:00",
        lambda day: f"{day - timedelta(days=1):%Y-%m-%d}T19:00:00-05:00",
    ],
)
def test_date_filter_covers_the_day_in_every_format(client: Client, form: Callable[[datetime], str]) -> None:
    day, agent = WEEK + timedelta(days=2), AgentFactory()
    edge = timedelta(microseconds=1)
    for at in (day - edge, day, day + timedelta(hours=12), day + timedelta(days=1) - edge, day + timedelta(days=1)):
        trade = bet(agent, amount="100.00")
        with guards_removed(Trade):
            Trade.objects.filter(pk=trade.pk).update(executed_at=at)
    window = {"executed_at__gte": form(day), "executed_at__lt": form(day + timedelta(days=1))}
    rows = client.get("/api/v1/trades/", {**window, "ordering": "executed_at"}).json()["results"]
    assert [row["executed_at"] for row in rows] == [
        "2026-03-10T00:00:00Z",
        "2026-03-10T12:00:00Z",
        "2026-03-10T23:59:59.999999Z",
    ]


def test_date_filter_with_a_percent_sign_is_refused(client: Client) -> None:
    refused = client.get("/api/v1/trades/", {"executed_at__gte": "%s 100%"})
    assert list(errors(refused)) == ["executed_at__gte"]
    assert "%s 100%" in errors(refused)["executed_at__gte"][0]


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/v1/agents/", "/api/v1/performance/"])
def test_every_error_has_the_problem_format(client: Client, path: str, settings: Any) -> None:
    SnapshotFactory(agent=AgentFactory(cohort=CohortFactory()))
    faults = {
        400: [client.get(path, {"mood": "bad"}), client.get(path, {"page_size": "soon"})],
        404: [client.get(f"{path}no/such/row/")],
        405: [client.put(path), client.delete(path), client.patch(path, b"{", content_type="text/odd")],
    }
    for status, answers in faults.items():
        for answer in answers:
            assert ("errors" in problem(answer, status)) == (status == 400)
            assert b"Traceback" not in answer.content
