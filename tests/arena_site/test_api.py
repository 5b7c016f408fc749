"""Every endpoint of the API: envelopes, refused parameters, errors as JSON, counted queries, the schema."""

import json
import logging
import re
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client, RequestFactory

from agents.models import Agent, Decision, Family
from arena_site.api import ENDPOINTS, INDEX
from arena_site.pages.views.site import server_error
from foundation.rest.cursors import StrictCursorPagination
from foundation.rest.filters import StrictFilterBackend
from scoring.services.forecast_leaderboards import refresh_forecast_leaderboards
from tests.arena_site.endpoints import LISTS, one_per_app
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    PriceObservationFactory,
    QuestionFactory,
    SnapshotFactory,
    ask,
    bet,
    end_question,
    play_week,
    submit_hold,
)
from tests.problems import errors, problem
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

CURSORS = sorted(name for name, view in ENDPOINTS.items() if view.pagination_class is StrictCursorPagination)
PAGED = sorted(set(LISTS) - set(CURSORS))
SCHEMA = Path(__file__).resolve().parents[2] / "arena_site" / "schema.yml"


def _week() -> None:
    play_week()
    rain = QuestionFactory()
    for arm in ("priced", "blind"):
        ask(rain, {"gpt-5.1": [0.6, 0.4]}, arm=arm)
    end_question(rain, "YES")
    refresh_forecast_leaderboards(at=WEEK + timedelta(days=31))
    submit_hold(Decision.objects.exclude(universe=None).earliest("pk"))


season = shared_rows(_week)


@pytest.mark.parametrize("name", one_per_app(PAGED))
def test_list_has_count_next_and_previous(season: None, client: Client, name: str) -> None:
    first = client.get(f"/api/v1/{name}/", {"page_size": 1}).json()
    assert set(first) == {"count", "next", "previous", "results"}
    assert len(first["results"]) == 1
    assert first["previous"] is None
    assert (first["next"] is not None) == (first["count"] > 1)


def test_cursor_returns_rows_of_the_same_instant_once(client: Client) -> None:
    agents = [AgentFactory(cohort=CohortFactory()) for _ in range(3)]
    for tick in range(3):
        at = WEEK + timedelta(minutes=10 * tick)
        for agent in agents:
            SnapshotFactory(agent=agent, taken_at=at)
            PriceObservationFactory(observed_at=at)
            bet(agent, amount="50.00", week=tick + 1)
        forecasts = dict.fromkeys(("gpt-5.1", "grok-4", "kimi-k2"), (0.5, 0.5))
        ask(QuestionFactory(), forecasts, day=WEEK + timedelta(days=tick))
    times = {"trades": "executed_at", "snapshots": "taken_at", "prices": "observed_at", "forecasts": "made_at"}
    assert sorted(times) == CURSORS
    for name, time in times.items():
        ids, url = [], f"/api/v1/{name}/?page_size=2&ordering=-{time}"
        while url:
            body = client.get(url).json()
            ids += [(row[time], row["id"]) for row in body["results"]]
            url = body["next"]
        assert len(ids) == len(set(ids)) == 9, name
        assert [at for at, _ in ids] == sorted((at for at, _ in ids), reverse=True), name


SIZE_RANGE = "{} is no whole number from 1 to 500"
KINDS = ["agents", "trades", "leaderboard"]
"""A list of rows by page, one by cursor, and one that is computed: what reads their parameters is shared."""
REFUSED = [
    *(("page_size", size, SIZE_RANGE.format(size), KINDS) for size in ("0", "-1", "501", "ten", "1.5", "9" * 400)),
    *(("page", page, f"{page} is no whole number", ["agents"]) for page in ("0", "last", "1.0", "-1", "9" * 400)),
    ("page_size", ["1", "2"], "given more than once", KINDS),
    ("page_size", "", "is empty", KINDS),
    ("page_size", "\0", "NUL", KINDS),
    *(
        (name, "id," * 500 + "id", "501 values; at most 500", ["trades"])
        for name in ("fields", "ordering", "agent__in")
    ),
    *((name, value, "has an empty value", ["trades"]) for name in ("fields", "kind__in") for value in (",", "id,,id")),
    ("executed_at__gte", "2026-03-08T00:00:00", "has no time zone", ["trades"]),
    ("executed_at__gte", "0001-01-01T00:00:00+10:00", "", ["trades"]),
]
"""A parameter, a value, a part of the complaint, and the endpoints that must refuse it."""


@pytest.mark.parametrize(
    ("name", "parameter", "value", "complaint"),
    [(name, parameter, value, complaint) for parameter, value, complaint, names in REFUSED for name in names],
)
def test_invalid_parameter_is_a_400_that_names_it(
    client: Client, name: str, parameter: str, value: Any, complaint: str
) -> None:
    messages = errors(client.get(f"/api/v1/{name}/", {parameter: value}))
    assert list(messages) == [parameter]
    assert complaint in messages[parameter][0]


@pytest.mark.parametrize("name", one_per_app(LISTS))
def test_every_list_refuses_unknown_parameters_sizes_and_pages(client: Client, name: str) -> None:
    refused = {
        "colour": ("red", "unknown parameter; known are "),
        "page_size": ("501", SIZE_RANGE.format(501)),
        **({"page": ("0", "0 is no whole number")} if name in PAGED else {}),
    }
    for parameter, (value, complaint) in refused.items():
        messages = errors(client.get(f"/api/v1/{name}/", {parameter: value}))
        assert list(messages) == [parameter]
        assert complaint in messages[parameter][0]


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        *((name, "page", "2") for name in PAGED),
        *((name, "cursor", cursor) for name in CURSORS for cursor in ("x", "cD1ub25zZW5zZQ==", "bz0tMQ==")),
    ],
)
def test_page_that_does_not_exist_is_a_404(client: Client, name: str, parameter: str, value: str) -> None:
    schema = problem(client.get(f"/api/v1/{name}/", {parameter: value}), 404)
    unknown = {"page": "there is no page 2", "cursor": "the cursor was not issued by this list in this order"}
    assert schema["detail"] == unknown[parameter]


@pytest.mark.parametrize("name", one_per_app(name for name in LISTS if hasattr(ENDPOINTS[name], "orderings")))
def test_every_ordering_sorts_and_an_unknown_one_is_refused(season: None, client: Client, name: str) -> None:
    for field in ENDPOINTS[name].orderings:
        for sign in ("", "-"):
            rows = client.get(f"/api/v1/{name}/", {"ordering": sign + field}).json()["results"]
            keys = [_sortable(row.get(field)) for row in rows]
            present = [key for key in keys if key is not None]
            assert present == sorted(present, reverse=sign == "-"), field
            assert keys[: len(present)] == present, "nulls come last"
    refused = client.get(f"/api/v1/{name}/", {"ordering": "-mood"})
    assert errors(refused)["ordering"][0].startswith("unknown field -mood; known are ")


def _sortable(value: Any) -> Any:
    """Numbers and times as they sort; other text, whose order is the database's own, not at all."""
    if isinstance(value, str) and re.fullmatch(r"-?\d+\.\d+", value):
        return float(value)
    return value if not isinstance(value, str) or value.endswith("Z") else 0


@pytest.mark.parametrize("name", one_per_app(name for name in LISTS if getattr(ENDPOINTS[name], "filters", None)))
def test_every_filter_names_a_value_that_it_refuses(client: Client, name: str) -> None:
    for parameter in StrictFilterBackend().get_filterset_class(ENDPOINTS[name]()).base_filters:
        if parameter == "search":
            continue  # any text can be looked for
        messages = errors(client.get(f"/api/v1/{name}/", {parameter: "no-such-thing"}))
        assert list(messages) == [parameter]
        assert "no-such-thing" in messages[parameter][0] or parameter == "week"


@pytest.mark.parametrize("name", one_per_app(LISTS))
def test_nothing_can_be_written(client: Client, name: str) -> None:
    allow_header = "GET, HEAD, OPTIONS"
    methods = ["post", "put", "patch", "delete"]
    if name == "exports":  # the only write: an operator requests an archive
        allow_header = "GET, POST, HEAD, OPTIONS"
        methods.remove("post")
    for method in methods:
        response = getattr(client, method)(f"/api/v1/{name}/")
        assert problem(response, 405)["detail"] == f'Method "{method.upper()}" not allowed.'
        assert response["Allow"] == allow_header


def test_a_format_does_not_hide_that_a_method_is_not_allowed(client: Client) -> None:
    problem(client.trace("/api/v1/agents/?format=csv"), 405)


@pytest.mark.parametrize("path", ["", "v1/nonsense/", "v1/cohorts/x/", "v1/agents/1/trades/", "v2/agents/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_unknown_path_is_a_404_in_json(client: Client, path: str, method: str) -> None:
    response = getattr(client, method)(f"/api/{path}")
    assert problem(response, 404)["detail"] == f"there is nothing at /api/{path}"


@pytest.mark.parametrize("path", ["cohorts/99", "agents/123456789012345678", "families/gpt-9", "decisions/1"])
def test_a_row_that_is_not_there_is_a_404_in_json(client: Client, path: str) -> None:
    problem(client.get(f"/api/v1/{path}/"), 404)


def test_a_path_that_lacks_its_slash_is_redirected_with_its_query(client: Client) -> None:
    response = client.get("/api/v1/cohorts?page=1")
    assert (response.status_code, response["Location"]) == (301, "/api/v1/cohorts/?page=1")
    assert client.get("/api/v1/nonsense").status_code == 404
    assert client.post("/api/v1/cohorts").status_code == 404


def test_one_row_takes_no_parameter_but_its_fields(client: Client) -> None:
    cohort = CohortFactory()
    refused = client.get(f"/api/v1/cohorts/{cohort.number}/", {"status": "completed"})
    assert errors(refused) == {"status": ["unknown parameter; known are fields"]}


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ACCEPTED = [None, "", "*/*", "application/*", "application/json", "text/html;q=0.9, application/json;q=0.1", BROWSER]


@pytest.mark.parametrize("accept", ACCEPTED)
def test_accept_header_that_allows_json_gets_it(client: Client, accept: str | None) -> None:
    response = client.get("/api/v1/families/", headers={} if accept is None else {"accept": accept})
    assert (response.status_code, response["Content-Type"]) == (200, "application/json")


@pytest.mark.parametrize("accept", ["text/html", "application/xml, image/*", "application/json;q=0", "x; y*=z'z'z"])
@pytest.mark.parametrize("path", ["", "families/", "families/gpt-5.1/", "performance/", "leaderboard/"])
def test_accept_header_that_can_not_be_met_is_a_406(client: Client, path: str, accept: str) -> None:
    refused = problem(client.get(f"/api/v1/{path}", headers={"accept": accept}), 406)
    assert "application/json" in refused["detail"]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/png", "text/csv"])
def test_error_has_one_form_whatever_is_accepted(client: Client, accept: str) -> None:
    headers = {"accept": accept}
    problem(client.get("/api/v1/nonsense/", headers=headers), 404)
    problem(client.put("/api/v1/agents/", headers=headers), 405)
    problem(client.get("/api/v1/cohorts/9/", headers=headers), 404)
    assert list(errors(client.get("/api/v1/cohorts/?mood=bad", headers=headers))) == ["mood"]


def test_request_for_another_host_is_a_400_in_the_same_form(client: Client, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["arena.example"]
    assert list(errors(client.get("/api/v1/agents/", headers={"host": "elsewhere.example"}))) == ["request"]


def test_index_has_the_address_of_every_list(season: None, client: Client) -> None:
    index = client.get("/api/v1/").json()
    computed = {"performance", "calibration", "time", "costs", "release-trends", "consistency", "pitfalls"}
    assert set(index) == set(INDEX) == {*LISTS, *computed}
    assert index["trades"] == "http://testserver/api/v1/trades/"
    assert [client.get(address).status_code for address in index.values()] == [200] * len(index)
    assert errors(client.get("/api/v1/?mood=bad")) == {"mood": ["takes no parameters"]}
    problem(client.post("/api/v1/"), 405)


def test_server_error_reveals_no_cause() -> None:
    response = server_error(RequestFactory().get("/api/v1/agents/"))
    assert json.loads(response.content)["detail"] == "the server failed; it is logged"
    assert (response.status_code, response["Content-Type"]) == (500, "application/problem+json")


@pytest.mark.thorough
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
        message = errors(client.get(f"/api/v1/{name}/", {"colour": "red"}))["colour"][0]
        parameters = set(message.removeprefix("unknown parameter; known are ").split(", "))
        assert {parameter["name"] for parameter in paths[f"/api/v1/{name}/"]["get"]["parameters"]} == parameters


def schema_of(client: Client, path: str, parameter: str) -> dict[str, Any]:
    document = client.get("/api/schema/", headers={"accept": "application/vnd.oai.openapi+json"}).json()
    (schema,) = [
        described_parameter["schema"]
        for described_parameter in document["paths"][path]["get"]["parameters"]
        if described_parameter["name"] == parameter
    ]
    return dict(schema)


def test_the_served_schema_lists_the_values_that_exist(client: Client) -> None:
    agents = AgentFactory.create_batch(3)
    slugs = sorted(Family.objects.values_list("slug", flat=True))
    assert schema_of(client, "/api/v1/agents/", "family")["enum"] == slugs
    assert schema_of(client, "/api/v1/agents/", "family__in")["items"]["enum"] == slugs
    assert schema_of(client, "/api/v1/performance/", "family")["enum"] == slugs
    ids = sorted(agent.pk for agent in agents)
    assert schema_of(client, "/api/v1/trades/", "agent")["enum"] == ids
    AgentFactory.create_batch(100)
    assert schema_of(client, "/api/v1/trades/", "agent")["enum"] == ids  # for ten minutes
    cache.clear()
    of_many = schema_of(client, "/api/v1/trades/", "agent")
    assert (of_many["minimum"], of_many["maximum"]) == (ids[0], Agent.objects.order_by("-pk")[0].pk)
    assert "enum" not in of_many


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
