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
from django.db import connection, models
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from agents.models import Trade
from arena_site.api import ENDPOINTS
from arena_site.middleware import delivery, last_change
from foundation.models import Run
from foundation.rest.filters import StrictFilterBackend
from foundation.rest.serializers import field_names
from foundation.rest.viewsets import ReadOnlyViewSet
from tests.arena_site.endpoints import kind_of_list
from tests.factories import WEEK, AgentFactory, CohortFactory, RunFactory, SnapshotFactory, bet, play_week
from tests.guards import guards_removed
from tests.problems import errors, problem
from tests.selection import one_per_rule
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

ROWS = sorted(name for name, view in ENDPOINTS.items() if issubclass(view, ReadOnlyViewSet))
LISTS = [f"/api/v1/{name}/" for name in sorted(ENDPOINTS)]
READS = [*LISTS, "/api/v1/performance/", "/api/v1/cohorts/1/", "/api/v1/families/gpt-5.1/", "/api/schema/"]
NOON = datetime(2026, 5, 6, 12, tzinfo=UTC)


def kind_of_path(path: str) -> object:
    """Lists of one app with the same paging are written alike."""
    name = path.removeprefix("/api/v1/").removesuffix("/")
    return kind_of_list(name) if name in ENDPOINTS else path


season = shared_rows(play_week)


@pytest.fixture(autouse=True)
def _quiet_refusals(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="django.request")


# --- conditional requests -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", one_per_rule(READS, kind_of_path))
def test_matching_etag_gets_304(season: None, client: Client, path: str) -> None:
    first = client.get(path)
    assert first["ETag"]
    assert first["Cache-Control"] == "no-cache"
    repeated = client.get(path, headers={"if-none-match": first["ETag"]})
    assert (repeated.status_code, repeated.content, repeated["ETag"]) == (304, b"", first["ETag"])
    foreign = client.get(path, headers={"if-none-match": first["ETag"], "origin": "https://notebook.example"})
    assert (foreign.status_code, foreign["Access-Control-Allow-Origin"]) == (304, "*")
    assert client.get(path, headers={"if-none-match": '"another"'}).content == first.content


def test_changed_response_has_another_etag(client: Client) -> None:
    play_week()
    before = client.get("/api/v1/agents/")["ETag"]
    play_week()
    after = client.get("/api/v1/agents/", headers={"if-none-match": before})
    assert (after.status_code, after["ETag"] == before) == (200, False)


@pytest.mark.parametrize("path", one_per_rule(READS, kind_of_path))
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


@pytest.mark.parametrize("name", sorted(ENDPOINTS))
def test_fields_parameter_selects_each_field(season: None, client: Client, name: str) -> None:
    path, key = f"/api/v1/{name}/", getattr(ENDPOINTS[name], "lookup_field", "pk")
    rows = client.get(path).json()["results"]
    for field in field_names(ENDPOINTS[name].serializer_class):
        selected = client.get(path, {"fields": field}).json()["results"]
        assert selected == [{field: row[field]} for row in rows]
    if name in ("agents-board", "disagreements", "leaderboard", "risk", "snapshots") or not rows:
        return
    row = rows[0]["id" if key == "pk" else key]
    detail = client.get(f"{path}{row}/").json()
    for field in detail:
        assert client.get(f"{path}{row}/", {"fields": field}).json() == {field: detail[field]}


@pytest.mark.parametrize("name", sorted(ENDPOINTS))
def test_unknown_field_is_named(client: Client, name: str) -> None:
    view: Any = ENDPOINTS[name]
    rows = (view.serializer_class, *getattr(view, "other_serializer_classes", ()))
    field_list = ", ".join(dict.fromkeys(field for row in rows for field in field_names(row)))
    refused = client.get(f"/api/v1/{name}/", {"fields": f"{field_list.split(', ')[0]},mood"})
    assert errors(refused) == {"fields": [f"unknown field mood; known are {field_list}"]}


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


@pytest.mark.parametrize("name", ROWS)
def test_every_reference_status_and_time_of_a_row_can_be_filtered_by(name: str) -> None:
    view = ENDPOINTS[name]
    filter_names = set(StrictFilterBackend().get_filterset_class(view()).base_filters)
    model = view.queryset.model
    columns = {field.name: field for field in model._meta.concrete_fields}
    for field in field_names(view.serializer_class):
        column = columns.get(field)
        if isinstance(column, models.DateTimeField):
            assert {f"{field}__gte", f"{field}__lt"} <= filter_names, field
        elif isinstance(column, models.ForeignKey) or field in ("cohort", "family", "market", "methodology"):
            assert field in filter_names or field == model._meta.pk.name, field
        elif column is not None and (column.choices or isinstance(column, models.BooleanField)):
            assert field in filter_names, field


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


@pytest.mark.parametrize("path", [*LISTS, "/api/v1/performance/"])
def test_every_error_has_the_problem_format(client: Client, path: str, settings: Any) -> None:
    SnapshotFactory(agent=AgentFactory(cohort=CohortFactory()))
    faults = {
        400: [client.get(path, {"mood": "bad"}), client.get(path, {"as_of": "soon"})],
        404: [client.get(f"{path}no/such/row/")],
        405: [client.put(path), client.delete(path), client.patch(path, b"{", content_type="text/odd")],
    }
    for status, answers in faults.items():
        for answer in answers:
            assert ("errors" in problem(answer, status)) == (status == 400)
            assert b"Traceback" not in answer.content
