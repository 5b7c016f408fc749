"""Generated requests for every operation of the API's schema, with all checks: no failure, no undocumented response."""

import json
import logging
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from django.test import RequestFactory
from hypothesis import HealthCheck, Phase, settings

from arena_site.api import schema_view
from scoring.constants import FORECAST
from scoring.models import Leaderboard
from tests.arena_site.api_promises import PROMISES
from tests.factories import WEEK, play_week
from tests.lazy_modules import LazyModule, schemathesis
from tests.shared_rows import shared_rows

checks = LazyModule("schemathesis.specs.openapi.checks")
constants = LazyModule("schemathesis.python._constants.orchestrator")
lazy = LazyModule("schemathesis.pytest.lazy")
application = get_wsgi_application()  # not the server's module, which begins to watch the workers

# On the database that refuses more values: NUL characters, and integers beyond four bytes.
pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.thorough, pytest.mark.postgres_only]

UNKNOWN = re.compile(r"occurs nowhere|: no [\w ]+ has the | is unknown; known are ")
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


def play() -> None:
    """A week, and a row whose category is a value of every list that has the parameter."""
    play_week()
    Leaderboard.objects.create(protocol=FORECAST, arm="priced", category="Weather", computed_at=WEEK, entries=[])


season = shared_rows(play)


@pytest.fixture(autouse=True)
def _quiet(season: None, db: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="django.request")


OPERATIONS = [line.split(" ", 2)[:2] for line in PROMISES.read_text().splitlines()]


@cache
def served_schema() -> Any:
    """The schema as it is served, with the values that exist; the file of promises names the operations."""
    # Not by a client, which connects the signals that `_one_connection` disconnects.
    request = RequestFactory().get("/api/schema/", headers={"accept": "application/vnd.oai.openapi+json"})
    schema = schemathesis.openapi.from_dict(json.loads(schema_view(request).content))  # type: ignore[attr-defined]
    schema.app = application
    constants.build_constants_pool(schema)  # reads the source of the arena, here for the tests of all operations
    return schema


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[f"{method} {path}" for method, path in OPERATIONS])
def test_api_conforms_to_its_schema(method: str, path: str) -> None:
    schema = served_schema().include(method=method, path=path)
    # Generated here: `schema.parametrize` does it when tests are collected, which every worker does.
    (generated,) = lazy.get_all_tests(schema=schema, test_func=check_response, settings=SETTINGS, given_kwargs=None)
    _, test = generated.ok()
    test()


def check_response(case: Any) -> None:
    omit_other_parameters(case)
    response = case.call(headers={"Accept-Encoding": "identity"})
    # Of a value that no row has the schema knows nothing; every other value of a parameter's kind is accepted.
    is_unknown = response.status_code == 400 and UNKNOWN.search(response.json()["detail"])
    case.validate_response(response, excluded_checks=[checks.positive_data_acceptance] if is_unknown else [])


def omit_other_parameters(case: Any) -> None:
    """Leaves the parameter that the coverage phase varies alone in the query.

    With all others beside it, most lists are empty and conform for want of a row, and half of the time goes to
    looking up what the others name.
    """
    tested = getattr(case.meta.phase.data, "parameter", None) if case.meta else None
    optional = [parameter.name for parameter in case.operation.query if not parameter.is_required]
    if tested in case.query:
        for name in optional:
            if name != tested:
                case.query.pop(name, None)
