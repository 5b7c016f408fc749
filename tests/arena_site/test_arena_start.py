"""`arena` on a fresh PostgreSQL database, twice at once: each prepares it in its turn and serves its first page."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from arena_site.management.commands.arena import is_loopback, site_url
from tests.arena_site.test_pgbouncer import bouncer  # noqa: F401 - a fixture
from tests.databases import PROJECT, DatabaseCopies, postgres_url
from tests.faults.clusters import eventually
from tests.season.test_demo import free_port

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.own_database]

FIRST_PAGE_S = 120
"""Far above what it takes, so that only a start that hangs or fails ends the test."""


@contextmanager
def running_arena(url: str, log: Path) -> Iterator[int]:
    """The port of an `arena` process on this database."""
    port = free_port()
    environment = os.environ | {"DATABASE_URL": url, "SECRET_KEY": "x" * 60, "ARENA_LINEUP": "unchecked"}
    environment["DJANGO_SETTINGS_MODULE"] = "arena_site.settings"
    command = [sys.executable, "manage.py", "arena", "--port", str(port), "--web-workers", "1"]
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=output, stderr=output)
        try:
            yield port
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8123"),
        ("arena.lan", "http://arena.lan:8123"),
        ("0.0.0.0", "http://localhost:8123"),
        ("::1", "http://[::1]:8123"),
    ],
)
def test_links_of_alerts_lead_to_the_address_that_is_served(host: str, address: str) -> None:
    assert site_url(host, 8123) == address
    assert is_loopback(host) == (host in ("127.0.0.1", "::1")), "the others are told that a front belongs before them"


def answers(port: int, log: Path) -> bool:
    assert "CommandError" not in log.read_text()
    try:
        return httpx.get(f"http://127.0.0.1:{port}/", timeout=10).status_code == 200
    except httpx.TransportError:
        return False


def check_two_starts(url: str, folder: Path) -> None:
    logs = [folder / "first.log", folder / "second.log"]
    with ExitStack() as stack:
        ports = [stack.enter_context(running_arena(url, log)) for log in logs]
        for port, log in zip(ports, logs, strict=True):
            eventually(lambda: answers(port, log), patience_s=FIRST_PAGE_S)  # noqa: B023 - called at once


@pytest.mark.postgres
def test_two_arenas_start_on_one_fresh_postgresql_database(tmp_path: Path) -> None:
    with DatabaseCopies(postgres_url(), tmp_path) as databases:
        check_two_starts(databases.address(databases.fresh()), tmp_path)


@pytest.mark.postgres
@pytest.mark.pgbouncer
def test_two_arenas_start_behind_a_pgbouncer(bouncer: Any, tmp_path: Path) -> None:  # noqa: F811
    check_two_starts(bouncer.fresh(), tmp_path)
