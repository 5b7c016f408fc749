"""Fixtures that many floors share, and Hypothesis made repeatable."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pytest_django.plugin import blocking_manager_key
from pytest_httpserver import HTTPServer

from tests.databases import copied, tables
from tests.first_rows import put_back
from tests.kills import NOBODY, ON_POSTGRES, ROOT, Arena, database_in
from tests.live import own_site, played, site  # noqa: F401 - fixtures
from tests.scanned import leave_alone, look_once
from tests.seasons import shares
from tests.tampering import lift
from tests.venue import Venue

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
look_once()


@pytest.fixture(scope="session")
def venue_server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def venue(venue_server: HTTPServer, settings: Any, db: None) -> Iterator[Venue]:
    """A scripted venue that the settings point at; the gateway is asked once, without retries."""
    venue_server.clear()
    settings.GAMMA_BASE_URL = venue_server.url_for("/gamma")
    settings.CLOB_BASE_URL = venue_server.url_for("/clob")
    settings.OPENROUTER_BASE_URL = venue_server.url_for("/gateway")
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    yield Venue(venue_server)
    venue_server.check_assertions()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any) -> Path:
    """An SQLite file in which nothing has happened yet, for copies to be made of. Not to be written to."""
    file: Path = tmp_path_factory.mktemp("migrated") / "arena.sqlite3"
    with django_db_blocker.unblock():
        if not copied(file):
            env = os.environ | {"DATABASE_URL": f"sqlite:///{file}", "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
            subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=ROOT, env=env, check=True)
    return file


@pytest.fixture(scope="session")
def migrated(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, django_db_blocker: Any
) -> Iterator[str]:
    """The name of such a database of the kind that the suite runs on."""
    if not ON_POSTGRES:
        yield str(request.getfixturevalue("migrated_file"))
        return
    with database_in(tmp_path_factory.mktemp("server")) as database:
        yield Arena(NOBODY, database, django_db_blocker.unblock).migrated()


def given_database(config: pytest.Config) -> str | None:
    """The address of the PostgreSQL that was given, in the process that no worker is."""
    postgres = os.environ.get("ARENA_TESTS_ON") == "postgres" and not hasattr(config, "workerinput")
    return os.environ["DATABASE_URL"] if postgres else None


TABLES = pytest.StashKey[frozenset[str]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    if url := given_database(session.config):
        session.config.stash[TABLES] = tables(url)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tests live in databases of their own: one that made tables in the given one would find them the next time."""
    url = given_database(session.config)
    if url and (made := tables(url) - session.config.stash[TABLES]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nA test made tables in the database that was given: {', '.join(sorted(made)[:5])} …")


LONGEST = (
    "season/test_demo.py",
    "faults/test_kills.py",
    "faults/test_clock.py",
    "browser/test_desk.py",
    "faults/test_queue.py",
    "browser/test_pages.py",
    "browser/test_accessibility.py",
    "faults/test_together.py",
    "browser/test_admin.py",
    "arena_site/test_settings.py",
    "arena_site/test_schemathesis.py",
    "arena_site/test_backup.py",
    "faults/test_upstream.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest go first, so that no worker waits for the last one of another.

    Within a file the tests that share rows come last: the others find none of them.
    """
    longest = [Path(__file__).parent / name for name in LONGEST]
    place = {path: place for place, path in enumerate(dict.fromkeys([*longest, *(item.path for item in items)]))}
    items.sort(key=lambda item: (place[item.path], shares(item)))


def pytest_collection_finish() -> None:
    leave_alone()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A test that is no transaction leaves an empty database: the next one finds what the migrations put there.

    What is on record can not be emptied: its triggers are lifted before, and the flush brings them back as a migrate.
    """
    marker = item.get_closest_marker("django_db")
    emptied = marker is not None and marker.kwargs.get("transaction")
    if emptied:
        with item.config.stash[blocking_manager_key].unblock():
            lift()
    yield
    if emptied and nextitem is not None:  # after the last one the test's database is gone
        with item.config.stash[blocking_manager_key].unblock():
            put_back()
