"""Generated requests for every operation of the API's schema, with all checks: no failure, no undocumented response."""

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
import yaml
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.pytest.lazy import get_all_tests

from agents.models import Family
from arena_site.api import ENDPOINTS
from cohorts.models import Cohort, Methodology
from markets.foundation.rest.filters import AnyOfFilter, ExistingValueFilter, ReferenceFilter, StrictFilterBackend
from markets.foundation.rest.serializers import field_names
from markets.models import Market
from markets.prompt_conditions import ARMS
from scoring.api.forecasts import ForecastLeaderboardEntrySerializer
from scoring.api.leaderboards import LeaderboardEntrySerializer, LeaderboardViewSet
from tests.arena_site.test_api import SCHEMA
from tests.factories import play_week
from tests.shared_rows import shared_rows

application = get_wsgi_application()  # not the server's module, which begins to watch the workers

pytestmark = pytest.mark.django_db

DOCUMENT = yaml.load(SCHEMA.read_text(), yaml.CSafeLoader)
# Explicit: the cases of the coverage phase.
SETTINGS = settings(max_examples=5, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def _one_connection() -> Iterator[None]:
    """The end of a request would close the connection that holds the test's transaction (as Django's client knows)."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


season = shared_rows(play_week)


@pytest.fixture(autouse=True)
def _quiet(season: None, db: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="django.request")


REFERENCES: dict[str, tuple[Any, str]] = {
    "cohort": (Cohort, "number"),
    "family": (Family, "slug"),
    "methodology": (Methodology, "version"),
    "category": (Market, "category"),
}
"""Models and columns that parameters of views without a filter set refer to."""


def existing_values(path: str, name: str) -> list[Any] | None:
    """The values that rows have for a query parameter that refers to rows; None for other parameters."""
    view: Any = ENDPOINTS.get(path.removeprefix("/api/v1/").strip("/"))
    if (view, name) == (LeaderboardViewSet, "fields"):  # those that rows of both protocols have
        return sorted({*field_names(LeaderboardEntrySerializer)} & {*field_names(ForecastLeaderboardEntrySerializer)})
    if not getattr(view, "filter_backends", ()):
        model, column = REFERENCES.get(name, (None, ""))
    else:
        single = StrictFilterBackend().get_filterset_class(view()).base_filters.get(name)
        single = single.single if isinstance(single, AnyOfFilter) else single
        if isinstance(single, ReferenceFilter):
            model, column = single.extra["queryset"].model, single.extra["to_field_name"] or "pk"
        else:
            model, column = view.queryset.model, single.field_name if isinstance(single, ExistingValueFilter) else ""
    if not column:
        return None
    values = model._default_manager.values_list(column, flat=True).distinct().order_by()
    return [value for value in values if value != ""]


def with_existing_values(path: str, operation: dict[str, Any]) -> dict[str, Any]:
    """The operation with the rows that exist as the values of references, since any other is a 400."""
    parameters = []
    for parameter in operation.get("parameters", ()):
        values, schema = existing_values(path, parameter["name"]), parameter["schema"]
        if values is not None:
            enum = {"type": schema.get("items", schema)["type"], "enum": values}
            schema = schema | {"items": enum} if schema["type"] == "array" else enum
        if values != []:
            parameters.append(parameter | {"schema": schema})
    return operation | {"parameters": parameters}


OPERATIONS = [(method, path) for path, methods in DOCUMENT["paths"].items() for method in methods]


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS])
def test_api_conforms_to_its_schema(method: str, path: str) -> None:
    operation = with_existing_values(path, DOCUMENT["paths"][path][method])
    schema = schemathesis.openapi.from_dict(DOCUMENT | {"paths": {path: DOCUMENT["paths"][path] | {method: operation}}})
    schema.app = application
    # Generated here: `schema.parametrize` does it when tests are collected, which every worker does.
    (generated,) = get_all_tests(
        schema=schema.include(method=method.upper()), test_func=check_response, settings=SETTINGS, given_kwargs=None
    )
    _, test = generated.ok()
    test()


def check_response(case: schemathesis.Case) -> None:
    """Sends a request and checks the response.

    Some of what is valid depends on rows, the clock or other parameters, which no schema can say: page 1 replaces other
    pages and cursors, the year 2000 the future, and a trading leaderboard has no arm.
    """
    query = case.query
    if str(query.get("page")).isdecimal():
        query["page"] = 1
    if query.get("cursor"):
        del query["cursor"]
    if re.match(r"\d{4}-", str(query.get("as_of"))):
        query["as_of"] = f"2000{query['as_of'][4:]}"
    if query.get("protocol") != "forecast" and query.get("arm") in ARMS and "/leaderboard/" in case.path:
        del query["arm"]
    case.call_and_validate(headers={"Accept-Encoding": "identity"})
