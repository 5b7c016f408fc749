"""The arena as visitors meet it: gunicorn in a process of its own, the settings as live, over a season once played.

`played` is the season's database, made once for a whole run whatever the number of workers; nobody writes to it.
ARENA_PLAYED names a file in which it is kept from run to run. `site` serves it. `own_site` serves a copy that belongs
to one test, which may do with it what it likes.
"""

import fcntl
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

from arena_site.processes import stop, web_server
from tests.databases import copied
from tests.played import ENDS_AFTER
from tests.venue import SUNDAY

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 60
OURS = ("ARENA_", "DJANGO_", "SECRET_KEY", "GAMMA_", "CLOB_", "OPENROUTER_", "KALSHI_", "DATABASE_URL")
NOWHERE = {f"{name}_BASE_URL": "http://127.0.0.1:9" for name in ("GAMMA", "CLOB", "OPENROUTER", "KALSHI")}


@dataclass(frozen=True)
class Site:
    """A running arena: where it answers, and the file it writes to."""

    url: str
    database: Path

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """What a query finds in its database at this moment."""
        with closing(sqlite3.connect(self.database)) as opened:
            return opened.execute(query, parameters).fetchall()


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, django_db_blocker: Any) -> Path:
    """The database of a season with everything in it. Not to be written to."""
    own = tmp_path_factory.getbasetemp()
    run = own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own
    file = Path(os.environ.get("ARENA_PLAYED") or run / "played" / "season.sqlite3")
    file.parent.mkdir(exist_ok=True, parents=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first worker plays, the others wait and find it done
        if not file.exists():
            draft = file.with_name("draft.sqlite3")
            draft.unlink(missing_ok=True)
            with django_db_blocker.unblock():
                copied(draft)
            made = subprocess.run(
                [sys.executable, "-m", "tests.played", str(draft)],
                cwd=ROOT, env=_environment(draft), capture_output=True, text=True,
            )  # fmt: skip
            assert made.returncode == 0, made.stderr[-4000:]
            draft.rename(file)
    return file


@pytest.fixture(scope="session")
def site(played: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The season's site, for reading: what a test leaves there the next ones find."""
    with serving(_copy(played, tmp_path_factory.mktemp("site"))) as running:
        yield running


@pytest.fixture
def own_site(played: Path, tmp_path: Path) -> Iterator[Site]:
    """The season's site for one test alone."""
    with serving(_copy(played, tmp_path)) as running:
        yield running


@contextmanager
def serving(database: Path, **settings: str) -> Iterator[Site]:
    """A site over this database while the block runs, with settings besides the usual ones."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = database.with_suffix(".log")
    with log.open("w") as said:
        server = subprocess.Popen(
            web_server(port, workers=1), cwd=ROOT, env=_environment(database) | settings, stdout=said,
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


def _copy(played: Path, folder: Path) -> Path:
    return Path(shutil.copy(played, folder / "site.sqlite3"))


def _answers(url: str) -> bool:
    try:
        answer = httpx.get(f"{url}/healthz", verify=False)  # spares each try the reading of all certificates
        return answer.status_code == 200
    except httpx.HTTPError:
        return False


def _environment(database: Path) -> dict[str, str]:
    """Settings as live ones, and none of this machine's; over a season that stands still, as a demo does."""
    machine = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    return machine | NOWHERE | {
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
