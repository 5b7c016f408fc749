"""Generated requests for every operation of the API's schema: no failure, no undocumented response."""

import logging
from collections.abc import Iterator

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.pytest.lazy import get_all_tests
from schemathesis.specs.openapi import checks

from tests.arena_site.test_api import SCHEMA
from tests.factories import play_week
from tests.shared_rows import shared_rows

application = get_wsgi_application()  # not the server's module, which begins to watch the workers

pytestmark = pytest.mark.django_db

schema = schemathesis.openapi.from_path(SCHEMA)
schema.app = application
SETTINGS = settings(max_examples=5, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.unsupported_method,
    checks.allow_header_conformance,
    checks.ignored_auth,
    checks.use_after_free,
    checks.ensure_resource_availability,
]


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


@pytest.mark.parametrize("operation", [result.ok().label for result in schema.get_all_operations()])
def test_api_conforms_to_its_schema(operation: str) -> None:
    # Generated here: `schema.parametrize` does it when tests are collected, which every worker does.
    (generated,) = get_all_tests(
        schema=schema.include(name=operation), test_func=check_response, settings=SETTINGS, given_kwargs=None
    )
    _, test = generated.ok()
    test()


def check_response(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=CHECKS, headers={"Accept-Encoding": "identity"})
