"""Scratch databases and a web server for measurements. Nothing of Django is imported before it is set up."""

import gc
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from manage import ALLOCATION_THRESHOLD
from tests.databases import DatabaseCopies, postgres_url


@contextmanager
def scratch_url(*, postgres: bool) -> Iterator[str]:
    """The address of an empty database on SQLite or PostgreSQL that is gone afterwards."""
    with (
        tempfile.TemporaryDirectory() as folder,
        DatabaseCopies(postgres_url() if postgres else "sqlite", Path(folder)) as databases,
    ):
        yield databases.address(databases.fresh())


@contextmanager
def scratch_database(*, postgres: bool) -> Iterator[None]:
    """Django set up with the tests' settings on a migrated scratch database."""
    with scratch_url(postgres=postgres) as url:
        os.environ.pop("ARENA_TESTS_ON", None)  # of a suite on PostgreSQL that started us
        os.environ |= {"DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
        _set_up()
        from django.core.management import call_command
        from django.db import connection

        call_command("migrate", verbosity=0)
        yield
        connection.close()


def set_up_production(url: str) -> None:
    """Sets up Django, here and in processes started from here, as in production on a database."""
    os.environ |= {"DATABASE_URL": url, "SECRET_KEY": "x" * 50, "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
    # Requests are counted as ever, but never refused.
    os.environ["ARENA_API_RATE"] = "1000000"
    _set_up()


def _set_up() -> None:
    import django

    gc.set_threshold(ALLOCATION_THRESHOLD)
    django.setup()


@contextmanager
def web_server() -> Iterator[tuple[str, int]]:
    """Host and port of a web server that was started as `manage.py arena` starts it."""
    from arena_site.operations import processes

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    server = processes.start(processes.web_server(port))
    try:
        for _ in range(200):
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            time.sleep(0.1)
        yield "127.0.0.1", port
    finally:
        processes.stop(server)
