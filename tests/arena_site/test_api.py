"""The API beyond its lists (see `test_api_matrix`): refused parameters, unknown paths, formats, index, schema."""

import json
import logging
import re
from typing import Any

import pytest
from django.test import Client, RequestFactory

from arena_site.api import ENDPOINTS, INDEX
from arena_site.pages.views.site import server_error
from tests.factories import (
    play_week,
)
from tests.problems import errors, problem
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

season = shared_rows(play_week)


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


def test_a_format_does_not_hide_that_a_method_is_not_allowed(client: Client) -> None:
    problem(client.trace("/api/v1/agents/?format=csv"), 405)


@pytest.mark.parametrize("path", ["", "v1/nonsense/", "v1/cohorts/x/", "v1/agents/1/trades/", "v2/agents/"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_an_unknown_path_is_a_404_in_json(client: Client, path: str, method: str) -> None:
    response = getattr(client, method)(f"/api/{path}")
    assert problem(response, 404)["detail"] == f"there is nothing at /api/{path}"


def test_a_path_that_lacks_its_slash_is_redirected_with_its_query(client: Client) -> None:
    response = client.get("/api/v1/cohorts?page=1")
    assert (response.status_code, response["Location"]) == (301, "/api/v1/cohorts/?page=1")
    assert client.get("/api/v1/nonsense").status_code == 404
    assert client.post("/api/v1/cohorts").status_code == 404


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
    computed = {"performance", "calibration", "time", "costs"}
    assert set(index) == set(INDEX) == {*ENDPOINTS, *computed}
    assert index["trades"] == "http://testserver/api/v1/trades/"
    assert [client.get(address).status_code for address in index.values()] == [200] * len(index)
    assert errors(client.get("/api/v1/?mood=bad")) == {"mood": ["takes no parameters"]}
    problem(client.post("/api/v1/"), 405)


def test_server_error_reveals_no_cause() -> None:
    response = server_error(RequestFactory().get("/api/v1/agents/"))
    assert json.loads(response.content)["detail"] == "the server failed; it is logged"
    assert (response.status_code, response["Content-Type"]) == (500, "application/problem+json")


def test_the_schema_names_every_endpoint_and_every_parameter_it_takes(client: Client) -> None:
    response = client.get("/api/schema/", headers={"accept": "application/vnd.oai.openapi+json"})
    paths = response.json()["paths"]
    assert response.json()["openapi"].startswith("3.1")
    for name in ENDPOINTS:
        message = errors(client.get(f"/api/v1/{name}/", {"colour": "red"}))["colour"][0]
        parameters = set(message.removeprefix("unknown parameter; known are ").split(", "))
        assert {parameter["name"] for parameter in paths[f"/api/v1/{name}/"]["get"]["parameters"]} == parameters


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
