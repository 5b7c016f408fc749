"""A running site: gunicorn in a process of its own with production settings, over the database of a full season.

The fixture `season_database` is built once for all workers of a run and is read only; ARENA_SEASON_FOLDER keeps it from
run to run. `site` serves one copy to all tests of a worker, `own_site` a new one to each test.
"""

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from arena_site.operations.processes import stop, web_server
from tests.commands import SUNDAY
from tests.databases import PROJECT, copy_test_database
from tests.season.full_season import ENDS_AFTER
from tests.shared_files import made_at, made_once

PATIENCE_S = 60
OWN_SETTINGS = ("ARENA_", "DJANGO_", "SECRET_KEY", "GAMMA_", "CLOB_", "OPENROUTER_", "KALSHI_", "DATABASE_URL")
UNREACHABLE = {f"{name}_BASE_URL": "http://127.0.0.1:9" for name in ("GAMMA", "CLOB", "OPENROUTER", "KALSHI")}


@dataclass(frozen=True)
class Site:
    """A running arena's address and its database file."""

    url: str
    database: Path

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows that a query finds in its database now."""
        with closing(sqlite3.connect(self.database)) as opened:
            return opened.execute(query, parameters).fetchall()


@pytest.fixture(scope="session")
def season_database(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any) -> Path:
    """The database of `tests.season.full_season`. Read only."""

    def play(folder: Path) -> None:
        file = folder / "season.sqlite3"
        file.unlink(missing_ok=True)
        with django_db_blocker.unblock():
            copy_test_database(file)
        played = subprocess.run(
            [sys.executable, "-m", "tests.season.full_season", str(file)],
            cwd=PROJECT, env=_environment(file), capture_output=True, text=True,
        )  # fmt: skip
        assert played.returncode == 0, played.stderr[-4000:]

    stored_folder = os.environ.get("ARENA_SEASON_FOLDER")
    folder = made_at(Path(stored_folder), play) if stored_folder else made_once(tmp_path_factory, "season", play)
    return folder / "season.sqlite3"


@pytest.fixture(scope="session")
def site(season_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The season's site, for reading: tests share its database."""
    with serving(_copy(season_database, tmp_path_factory.mktemp("site"))) as running:
        yield running


@pytest.fixture
def own_site(season_database: Path, tmp_path: Path) -> Iterator[Site]:
    """The season's site for one test, which may change it."""
    with serving(_copy(season_database, tmp_path)) as running:
        yield running


@contextmanager
def serving(database: Path, **settings: str) -> Iterator[Site]:
    """Serves this database while the block runs, with more settings in the environment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = database.with_suffix(".log")
    with log.open("w") as output:
        server = subprocess.Popen(
            web_server(port, workers=1), cwd=PROJECT, env=_environment(database) | settings, stdout=output,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + PATIENCE_S
        while not _answers(url):
            assert server.poll() is None, log.read_text()[-4000:]
            assert time.monotonic() < end, f"no answer: {log.read_text()[-4000:]}"
            time.sleep(0.1)
        yield Site(url, database)
    finally:
        stop(server)


def _copy(season_database: Path, folder: Path) -> Path:
    return Path(shutil.copy(season_database, folder / "site.sqlite3"))


def _answers(url: str) -> bool:
    try:
        answer = httpx.get(f"{url}/healthz", verify=False)  # spares each try the reading of all certificates
        return answer.status_code == 200
    except httpx.HTTPError:
        return False


def _environment(database: Path) -> dict[str, str]:
    """Production settings without those of this machine, and a clock that stands at the season's end."""
    machine = {name: value for name, value in os.environ.items() if not name.startswith(OWN_SETTINGS)}
    return machine | UNREACHABLE | {
        "SECRET_KEY": "only-for-tests-0123456789-abcdefghij-klmnopqrst-uvwxyz",
        "DATABASE_URL": f"sqlite:///{database}",
        "ARENA_DEMO": "true",
        "ARENA_HTTPS": "false",
        "ARENA_API_RATE": "0",
        "ARENA_SOURCES": "polymarket,kalshi",
        "ARENA_CLOCK": (SUNDAY + ENDS_AFTER).isoformat(),
        "ARENA_EXPORT_DIR": str(database.parent / "exports"),
        "DJANGO_SETTINGS_MODULE": "arena_site.settings",
    }  # fmt: skip
