"""Fixtures that many test packages share, and the order in which tests run."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
import stamina
from django.core.cache import cache, caches
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, settings
from pytest_django.plugin import blocking_manager_key
from pytest_httpserver import HTTPServer

from arena_site import conf
from arena_site.middleware import heavy_reads
from arena_site.operations.processes import freeze_loaded_objects
from scoring.selectors import competition
from tests import selection
from tests.databases import ON_POSTGRES, PROJECT, copy_test_database, database_copies, restore_initial_rows, table_names
from tests.faults.processes import NO_SANDBOX, CommandRunner, sandbox
from tests.guards import install_guards, remove_guards
from tests.ledger import ledger_violations
from tests.sandbox import Venue, addresses
from tests.season.running_site import own_site, season_database, site  # noqa: F401 - fixtures
from tests.shared_rows import layers_of_rows

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=selection.examples(100),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ORACLES = "tests/forecast_rank/metrics/"


@pytest.fixture(autouse=True)
def _empty_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """No cached row or response is left to the next test, whose rows differ under the same versions."""
    cache.clear()
    caches["limits"].clear()
    heavy_reads._durations.clear()
    monkeypatch.setattr(competition, "_cached", None)


@pytest.fixture
def retries_without_waits() -> Iterator[None]:
    """Failed requests are sent again at once."""
    with stamina.set_testing(True, attempts=99, cap=True):
        yield


@pytest.fixture(scope="session")
def venue_server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def venue(venue_server: HTTPServer, settings: Any, db: None) -> Iterator[Venue]:
    """A scripted venue that the settings point at; the gateway is asked once, without retries."""
    venue_server.clear()
    for name, url in addresses(venue_server).items():
        setattr(settings, name, url)
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    yield Venue(venue_server)
    venue_server.check_assertions()


@pytest.fixture
def redis(tmp_path: Path, settings: Any) -> Iterator[None]:
    """Django's caches on a Redis server of its own."""
    options = ("--port", "0", "--unixsocket", str(tmp_path / "socket"), "--save", "", "--dir", str(tmp_path))
    with subprocess.Popen(["redis-server", *options], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert any("ready to accept connections" in line.lower() for line in server.stdout)
        settings.CACHES = dict.fromkeys(("default", "limits"), conf.cache(f"unix://{tmp_path / 'socket'}"))
        yield
        server.terminate()


class QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a real server; its thread needs no database for these files."""
    with make_server("127.0.0.1", 0, WSGIHandler(), handler_class=QuietHandler) as httpd:
        thread = Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any) -> Path:
    """A freshly migrated SQLite file, to make copies of. Read only."""
    file: Path = tmp_path_factory.mktemp("migrated") / "arena.sqlite3"
    with django_db_blocker.unblock():
        if not copy_test_database(file):
            env = os.environ | {"DATABASE_URL": f"sqlite:///{file}", "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
            subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=PROJECT, env=env, check=True)
    return file


@pytest.fixture(scope="session")
def migrated(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, django_db_blocker: Any
) -> Iterator[str]:
    """The name of a freshly migrated database of the kind that the suite runs on."""
    if not ON_POSTGRES:
        yield str(request.getfixturevalue("migrated_file"))
        return
    with database_copies(tmp_path_factory.mktemp("server")) as database:
        yield CommandRunner(NO_SANDBOX, database, django_db_blocker.unblock).migrated()


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any, migrated: str) -> Iterator[CommandRunner]:
    """A runner of commands with a sandbox of its own."""
    with sandbox() as addresses, database_copies(tmp_path_factory.mktemp("arena")) as database:
        yield CommandRunner(addresses, database, django_db_blocker.unblock, migrated)


@pytest.fixture(scope="module")
def offline_arena(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any, migrated: str
) -> Iterator[CommandRunner]:
    """A runner of commands that reach no upstream."""
    with database_copies(tmp_path_factory.mktemp("arena")) as database:
        yield CommandRunner(NO_SANDBOX, database, django_db_blocker.unblock, migrated)


def postgres_server(config: pytest.Config) -> str | None:
    """The address of the PostgreSQL server in pytest-xdist's controller, None in its workers and on SQLite."""
    return os.environ["DATABASE_URL"] if ON_POSTGRES and not hasattr(config, "workerinput") else None


TABLES_AT_START = pytest.StashKey[frozenset[str]]()


def pytest_sessionstart(session: pytest.Session) -> None:
    if url := postgres_server(session.config):
        session.config.stash[TABLES_AT_START] = table_names(url)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run if a test left tables in the server's own database instead of one of its own."""
    url = postgres_server(session.config)
    if url and (new_tables := table_names(url) - session.config.stash[TABLES_AT_START]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\nA test left tables in the database at DATABASE_URL: {', '.join(sorted(new_tables)[:5])} …")


def pytest_itemcollected(item: pytest.Item) -> None:
    selection.mark(item)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Runs the longest files first, then the slow ones, so that no worker waits for another's last.

    Within a file the tests with shared rows run last, because the others expect a database without them.
    """
    selection.deselect(config, items)

    def place(item: pytest.Item) -> tuple[Any, ...]:
        waits = [item.get_closest_marker(marker) is None for marker in ("longest", "slow")]
        return (*waits, item.path, layers_of_rows(item))

    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives a worker whole files, and one of them the folder whose oracles (scikit-learn, statsmodels) load long."""
    from xdist.scheduler import LoadFileScheduling

    class FileOrFolderScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return ORACLES if nodeid.startswith(ORACLES) else super()._split_scope(nodeid)

    return FileOrFolderScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempts all imported and collected objects from garbage collection, which took a tenth of the tests' time."""
    freeze_loaded_objects()
    gc.set_threshold(50_000, 20, 50)


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(selection.Summary(config))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Verifies the ledger after each test with a venue, unless the test is marked `forged_record`."""
    yield
    has_record = {"venue", "db"} <= set(getattr(item, "fixturenames", ()))
    if has_record and not item.get_closest_marker("forged_record") and (violations := ledger_violations()):
        pytest.fail("the ledger's verification names:\n" + "\n".join(violations), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Restores the migrations' rows after a transactional test, whose teardown empties every table.

    Protected tables refuse to be emptied, so their guards go first; the flush's migrate signal installs them again.
    """
    marker = item.get_closest_marker("django_db")
    transactional = marker is not None and marker.kwargs.get("transaction")
    if transactional:
        with item.config.stash[blocking_manager_key].unblock():
            remove_guards()
    yield
    if transactional and nextitem is not None:  # after the last test its database is gone
        with item.config.stash[blocking_manager_key].unblock():
            install_guards()  # of a skipped test nothing was emptied, and no signal sent
            restore_initial_rows()
