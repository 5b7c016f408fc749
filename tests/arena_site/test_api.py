"""What holds for every endpoint: envelopes, strictness, faults as JSON, counted queries, the schema."""

import logging
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from rest_framework.exceptions import ValidationError

from agents.models import Decision, Position
from arena_site.api import ENDPOINTS, problem, server_error
from markets.foundation.rest import StrictCursorPagination
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    InstructionFactory,
    MarketFactory,
    ModelCallFactory,
    PriceObservationFactory,
    QuestionFactory,
    SnapshotFactory,
    asked,
    bet,
    play_week,
)
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

LISTS = sorted(ENDPOINTS)
CURSORS = sorted(name for name, view in ENDPOINTS.items() if view.pagination_class is StrictCursorPagination)
PAGED = sorted(set(LISTS) - set(CURSORS))
SCHEMA = Path(__file__).resolve().parents[2] / "arena_site" / "schema.yml"

season = shared_rows(play_week)


def queries(client: Client, path: str) -> tuple[int, Any]:
    with CaptureQueriesContext(connection) as counted:
        response = client.get(path)
    assert response.status_code == 200, response.content
    return len(counted), response.json()


@pytest.mark.parametrize("name", ["agents", "decisions", "universes"])
def test_one_row_costs_the_same_queries_however_much_hangs_on_it(season: None, client: Client, name: str) -> None:
    row = client.get(f"/api/v1/{name}/").json()["results"][-1]["id"]
    before, _ = queries(client, f"/api/v1/{name}/{row}/")
    position = Position.objects.open().first()
    assert position is not None
    bet(position.agent, MarketFactory())
    bet(position.agent, MarketFactory())
    for decision in Decision.objects.all():
        InstructionFactory(call=ModelCallFactory(decision=decision))
        InstructionFactory(call=ModelCallFactory(decision=decision))
    after, _ = queries(client, f"/api/v1/{name}/{row}/")
    assert after == before <= 9


@pytest.mark.parametrize("name", PAGED)
def test_a_list_tells_its_count_and_its_neighbours(season: None, client: Client, name: str) -> None:
    first = client.get(f"/api/v1/{name}/", {"page_size": 1}).json()
    assert set(first) == {"count", "next", "previous", "results"}
    assert len(first["results"]) == 1
    assert first["previous"] is None
    assert (first["next"] is not None) == (first["count"] > 1)


@pytest.mark.parametrize("name", CURSORS)
def test_a_cursor_walks_every_row_once_though_many_share_an_instant(client: Client, name: str) -> None:
    agents = [AgentFactory(cohort=CohortFactory()) for _ in range(3)]
    for tick in range(3):
        at = WEEK + timedelta(minutes=10 * tick)
        for agent in agents:
            SnapshotFactory(agent=agent, taken_at=at)
            PriceObservationFactory(observed_at=at)
        said = dict.fromkeys(("gpt-5.1", "grok-4", "kimi-k2"), (0.5, 0.5))
        asked(QuestionFactory(), said, day=WEEK + timedelta(days=tick))
    seen, url = [], f"/api/v1/{name}/?page_size=2"
    while url:
        body = client.get(url).json()
        seen += [(_time(row), row.get("agent") or row["id"]) for row in body["results"]]
        url = body["next"]
    assert len(seen) == len(set(seen)) == 9
    assert [at for at, _ in seen] == sorted((at for at, _ in seen), reverse=True)


def _time(row: dict[str, Any]) -> str:
    return next(row[name] for name in ("taken_at", "observed_at", "made_at") if name in row)


@pytest.mark.parametrize("cursor", ["x", "cD1ub25zZW5zZQ==", "bz0tMQ=="])
@pytest.mark.parametrize("name", CURSORS)
def test_a_made_up_cursor_is_refused(client: Client, name: str, cursor: str) -> None:
    PriceObservationFactory()
    SnapshotFactory()
    response = client.get(f"/api/v1/{name}/", {"cursor": cursor})
    assert (response.status_code, list(response.json())) == (400, ["cursor"])


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("size", ["0", "-1", "501", "ten", "1.5", "9" * 400])
def test_a_page_size_outside_1_to_500_is_refused(client: Client, name: str, size: str) -> None:
    response = client.get(f"/api/v1/{name}/", {"page_size": size})
    assert response.status_code == 400
    assert response.json() == {"page_size": [f"{size} is no whole number from 1 to 500"]}


@pytest.mark.parametrize("page", ["0", "2", "last", "1.0", "-1", "9" * 400])
@pytest.mark.parametrize("name", PAGED)
def test_a_page_that_is_not_there_is_refused(client: Client, name: str, page: str) -> None:
    response = client.get(f"/api/v1/{name}/", {"page": page})
    assert (response.status_code, response.json()) == (400, {"page": [f"there is no page {page}"]})


@pytest.mark.parametrize("name", LISTS)
def test_an_unknown_parameter_is_named_along_with_the_known_ones(client: Client, name: str) -> None:
    response = client.get(f"/api/v1/{name}/", {"colour": "red"})
    assert response.status_code == 400
    assert list(response.json()) == ["colour"]
    assert response.json()["colour"][0].startswith("unknown parameter; known are ")
    assert "page_size" in response.json()["colour"][0]


@pytest.mark.parametrize(
    ("query", "complaint"),
    [("page_size=1&page_size=2", "given more than once"), ("page_size=", "is empty"), ("page_size=%00", "NUL")],
)
@pytest.mark.parametrize("name", LISTS)
def test_a_doubled_or_empty_parameter_is_refused(client: Client, name: str, query: str, complaint: str) -> None:
    response = client.get(f"/api/v1/{name}/?{query}")
    assert response.status_code == 400
    assert complaint in response.json()["page_size"][0]


@pytest.mark.parametrize("name", [name for name, view in ENDPOINTS.items() if hasattr(view, "orderings")])
def test_every_ordering_sorts_and_an_unknown_one_is_refused(season: None, client: Client, name: str) -> None:
    for field in ENDPOINTS[name].orderings:
        for sign in ("", "-"):
            rows = client.get(f"/api/v1/{name}/", {"ordering": sign + field}).json()["results"]
            keys = [_sortable(row.get(field)) for row in rows]
            there = [key for key in keys if key is not None]
            assert there == sorted(there, reverse=sign == "-"), field
            assert keys[: len(there)] == there, "nulls come last"
    refused = client.get(f"/api/v1/{name}/", {"ordering": "-mood"})
    assert refused.status_code == 400
    assert refused.json()["ordering"][0].startswith("unknown field -mood; known are ")


def _sortable(value: Any) -> Any:
    """Numbers and times as they sort; other text, whose order is the database's own, not at all."""
    if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+", value):
        return float(value)
    return value if not isinstance(value, str) or value.endswith("Z") else 0


@pytest.mark.parametrize("name", [name for name, view in ENDPOINTS.items() if getattr(view, "filterset_class", None)])
def test_every_filter_takes_what_it_should_and_names_what_it_can_not_take(client: Client, name: str) -> None:
    for parameter in ENDPOINTS[name].filterset_class.base_filters:
        response = client.get(f"/api/v1/{name}/", {parameter: "no-such-thing"})
        assert (response.status_code, list(response.json())) == (400, [parameter])
        assert "no-such-thing" in response.json()[parameter][0] or parameter == "week"


def test_a_time_without_a_zone_is_refused(client: Client) -> None:
    response = client.get("/api/v1/trades/", {"executed_at__gte": "2026-03-08T00:00:00"})
    assert response.status_code == 400
    assert "has no time zone" in response.json()["executed_at__gte"][0]


def test_a_time_before_all_times_is_refused(client: Client) -> None:
    response = client.get("/api/v1/trades/", {"executed_at__gte": "0001-01-01T00:00:00+10:00"})
    assert (response.status_code, list(response.json())) == (400, ["executed_at__gte"])


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_written(client: Client, name: str, method: str) -> None:
    if (name, method) == ("exports", "post"):
        return  # the one thing that an operator may have made
    response = getattr(client, method)(f"/api/v1/{name}/")
    assert response.status_code == 405
    assert response.json() == {"detail": f'Method "{method.upper()}" not allowed.'}


@pytest.mark.parametrize("path", ["", "v1/", "v1/nonsense/", "v1/cohorts/x/", "v1/agents/1/trades/", "v2/agents/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_unknown_path_is_a_404_in_json(client: Client, path: str, method: str) -> None:
    response = getattr(client, method)(f"/api/{path}")
    assert response.status_code == 404
    assert response.json() == {"detail": f"there is nothing at /api/{path}"}


@pytest.mark.parametrize("path", ["cohorts/99", "agents/123456789012345678", "families/gpt-9", "decisions/1"])
def test_a_row_that_is_not_there_is_a_404_in_json(client: Client, path: str) -> None:
    response = client.get(f"/api/v1/{path}/")
    assert (response.status_code, list(response.json())) == (404, ["detail"])


def test_a_path_that_lacks_its_slash_is_redirected_with_its_query(client: Client) -> None:
    response = client.get("/api/v1/cohorts?page=1")
    assert (response.status_code, response["Location"]) == (301, "/api/v1/cohorts/?page=1")
    assert client.get("/api/v1/nonsense").status_code == 404
    assert client.post("/api/v1/cohorts").status_code == 404


def test_one_row_takes_no_parameter_but_its_fields(client: Client) -> None:
    cohort = CohortFactory()
    response = client.get(f"/api/v1/cohorts/{cohort.number}/", {"status": "completed"})
    assert (response.status_code, response.json()) == (400, {"status": ["unknown parameter; known are fields"]})


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "*/*"])
def test_the_answer_is_json_whatever_is_asked_for(client: Client, accept: str) -> None:
    response = client.get("/api/v1/families/", headers={"accept": accept})
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")


def test_a_fault_without_a_field_becomes_a_detail() -> None:
    response = problem(ValidationError(["This is wrong.", "That too."]), {})
    assert response is not None
    assert response.data == {"detail": "This is wrong. That too."}


def test_a_server_error_tells_nothing_of_its_cause() -> None:
    response = server_error(RequestFactory().get("/api/v1/agents/"))
    assert (response.status_code, response.content) == (500, b'{"detail": "the server failed; it is logged"}')


def test_the_schema_is_sound_and_the_committed_one_has_not_drifted(tmp_path: Path) -> None:
    """After a change of the API: `manage.py spectacular --validate --fail-on-warn --file arena_site/schema.yml`."""
    fresh = tmp_path / "schema.yml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(fresh), stderr=StringIO())
    assert fresh.read_text() == SCHEMA.read_text()


def test_the_schema_names_every_endpoint_and_every_parameter_it_takes(client: Client) -> None:
    response = client.get("/api/schema/", headers={"accept": "application/vnd.oai.openapi+json"})
    paths = response.json()["paths"]
    assert response.json()["openapi"].startswith("3.1")
    for name in LISTS:
        taken = client.get(f"/api/v1/{name}/", {"colour": "red"}).json()["colour"][0]
        known = set(taken.removeprefix("unknown parameter; known are ").split(", "))
        assert {parameter["name"] for parameter in paths[f"/api/v1/{name}/"]["get"]["parameters"]} == known


def test_the_docs_need_no_inline_script_and_no_other_host(client: Client) -> None:
    page = client.get("/api/docs/")
    assert page.status_code == 200
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page.content.decode(), re.DOTALL)
    assert scripts
    assert all("src=" in attributes and not body.strip() for attributes, body in scripts)
    assert not re.search(r"<style|\sstyle=", page.content.decode())
    assert re.findall(r'(?:src|href)="(?:https?:)?//', page.content.decode()) == []
    assert "default-src 'self'" in page["Content-Security-Policy"]
    script = client.get("/api/docs/", {"script": ""})
    assert script["Content-Type"].startswith("application/javascript")
    assert b"/api/schema/" in script.content


@pytest.fixture(autouse=True)
def _quiet_refusals(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="django.request")
