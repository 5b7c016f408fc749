"""PostgreSQL behind a PgBouncer in transaction mode: nothing that belongs to a session is relied on."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.db.utils import ConnectionHandler
from psycopg.conninfo import conninfo_to_dict

from arena_site import conf
from arena_site.middleware.read_deadlines import read_deadline
from tests.databases import PROJECT, DatabaseCopies, postgres_url
from tests.faults.clusters import eventually

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.postgres,
    pytest.mark.pgbouncer,
    pytest.mark.slow,
    pytest.mark.thorough,
]
SESSIONS = 2
"""Of the server, shared by all clients."""
CLIENTS = 6
CONFIGURATION = """
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {sessions}
pidfile = {folder}/pid
"""


@pytest.fixture(scope="module")
def bouncer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatabaseCopies]:
    """New databases on the suite's server, reached through a PgBouncer."""
    folder = tmp_path_factory.mktemp("pgbouncer")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    connection_info = conninfo_to_dict(postgres_url())
    server = " ".join(
        f"{name}={connection_info[name]}" for name in ("host", "port", "user", "password") if connection_info.get(name)
    )
    configuration = folder / "pgbouncer.ini"
    configuration.write_text(CONFIGURATION.format(server=server, port=port, sessions=SESSIONS, folder=folder))
    for path in (folder, *folder.parents[:3]):  # it gives up root's rights
        path.chmod(path.stat().st_mode | 0o755)
    shutil.chown(folder, "nobody") if os.geteuid() == 0 else None
    user = ["--user", "nobody"] if os.geteuid() == 0 else []
    with subprocess.Popen(["pgbouncer", *user, "--quiet", str(configuration)]) as process:
        try:
            eventually(lambda: _listens(port), patience_s=20)
            with DatabaseCopies(postgres_url(), folder) as direct:
                yield _Bounced(direct, f"postgres://{connection_info.get('user', 'postgres')}@127.0.0.1:{port}")
        finally:
            process.terminate()


class _Bounced:
    """Databases made on the server itself, with addresses at the PgBouncer."""

    def __init__(self, direct: DatabaseCopies, address: str) -> None:
        self.direct, self.server = direct, address

    def fresh(self) -> str:
        return f"{self.server}/{self.direct.fresh()}"


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _connection(url: str) -> Any:
    return ConnectionHandler({"default": conf.database(url)})["default"]


@contextmanager
def as_default(connection: Any) -> Iterator[None]:
    """Makes it this thread's default connection while the block runs."""
    suite = connections[DEFAULT_DB_ALIAS]
    connections[DEFAULT_DB_ALIAS] = connection
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = suite
        connection.close()


def test_clients_share_sessions_without_prepared_statements(bouncer: Any) -> None:
    url = bouncer.fresh()
    together = Barrier(CLIENTS, timeout=20)

    def client(number: int) -> list[int]:
        connection = _connection(url)
        read = []
        for turn in range(20):  # psycopg prepares a statement that it has seen five times
            together.wait()
            with connection.cursor() as cursor:
                cursor.execute("SELECT %s::int + %s::int", [number, turn])
                read.append(cursor.fetchone()[0] - turn)
            if turn % 5 == 0:
                connection.close()
        connection.close()
        return read

    with ThreadPoolExecutor(CLIENTS) as clients:
        results = list(clients.map(client, range(CLIENTS)))
    assert results == [[number] * 20 for number in range(CLIENTS)]


def test_rows_are_read_without_a_cursor_of_the_server(bouncer: Any) -> None:
    """Such a cursor would be unknown to the session that serves the next statement."""
    url = bouncer.fresh()
    connection = _connection(url)
    with as_default(connection):
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE auth_group AS SELECT i AS id, 'name' AS name FROM generate_series(1, 9) i")
        rows = Group.objects.iterator(chunk_size=1)
        next(rows)
        with psycopg.connect(url, prepare_threshold=None) as another:
            another.execute("SELECT 1")  # and its transaction has the session that served the last statement
            assert len(list(rows)) == 8


def test_slow_read_ends_and_leaves_its_session_to_others(bouncer: Any) -> None:
    connection = _connection(bouncer.fresh())
    with as_default(connection):
        with pytest.raises(OperationalError, match="cancel"), read_deadline(0.3), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")
        with connection.cursor() as cursor:  # its time-out would still stand, if it were a setting of the session
            cursor.execute("SELECT pg_sleep(1), current_setting('statement_timeout')")
            assert cursor.fetchone()[1] == "0"


def test_commands_run_behind_a_pgbouncer(bouncer: Any, tmp_path: Path) -> None:
    settings = {
        "DATABASE_URL": bouncer.fresh(),
        "DJANGO_SETTINGS_MODULE": "arena_site.settings",
        "ARENA_LINEUP": "unchecked",
    }
    for command in (["migrate", "-v0"], ["install_schedules"], ["start_cohort"], ["take_snapshots"], ["verify_ledger"]):
        process = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=PROJECT, env=os.environ | settings, capture_output=True, text=True,
        )  # fmt: skip
        assert process.returncode == 0, (command, process.stderr)
    with psycopg.connect(settings["DATABASE_URL"], prepare_threshold=None) as connection:
        assert connection.execute("SELECT current_setting('lock_timeout')").fetchone() == ("0",)
