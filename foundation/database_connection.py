"""This thread's connection to the database: opened, or checked, before it is used."""

import logging
import os
import threading
import time
from pathlib import Path
from select import POLLIN, poll
from typing import Any

from django.db import InterfaceError, OperationalError, connection

GONE = "the database is not available; try again in a moment"
SILENT_S = 1.5
"""The time for an answer to an empty query: more than a server at work needs, less than a reader waits."""
RETRY_S = 3
"""For this time after a failure others are answered without another try: a connection to a silent server takes 2 s."""


class DatabaseGone(OperationalError):
    """The database's file is not there: opening it would make an empty one."""


class _Outage:
    """When this process last found the database gone, on the monotonic clock."""

    found_s = float("-inf")


class _OpenFile(threading.local):
    """Which SQLite file this thread's connection has open."""

    identity: tuple[int, int] | None = None


_open_file = _OpenFile()
log = logging.getLogger(__name__)


def check_connection() -> None:
    """Opens or checks this thread's connection. Raises OperationalError where the database is, or was just, gone."""
    if time.monotonic() - _Outage.found_s < RETRY_S:
        raise OperationalError(GONE)
    try:
        _connect()
    except (OperationalError, InterfaceError) as error:
        log.warning("the database is gone: %s", type(error.__cause__ or error).__name__)
        _Outage.found_s = time.monotonic()
        raise


def _connect() -> None:
    if connection.vendor == "sqlite":
        _check_file()
    elif connection.connection is not None:
        _check_server(connection.connection.pgconn)
    connection.ensure_connection()
    connection.health_check_done = True  # type: ignore[attr-defined] # Django's would wait for a silent server


def _check_server(libpq: Any) -> None:
    """Closes a connection that the server has ended, or that is silent. Raises OperationalError for a silent one."""
    try:
        with connection.wrap_database_errors:
            answer = poll()
            answer.register(libpq.socket, POLLIN)
            libpq.send_query(b"")
            is_silent = not answer.poll(SILENT_S * 1000)
            has_ended = not is_silent and any(result.error_message for result in iter(libpq.get_result, None))
    except OperationalError:
        is_silent, has_ended = False, True
    if is_silent or has_ended:
        connection.close()
    if is_silent:
        raise OperationalError("the database server does not answer")


def _check_file() -> None:
    """An open file can be read after it was moved away; a connection opened since then is to another file."""
    name = str(connection.settings_dict["NAME"])
    if connection.is_in_memory_db():  # type: ignore[attr-defined]
        return
    try:
        status = os.stat(Path(name))
    except OSError as error:
        connection.close()
        raise DatabaseGone(f"{name}: {error.strerror}") from error
    identity = (status.st_dev, status.st_ino)
    if _open_file.identity not in (None, identity):
        connection.close()
    _open_file.identity = identity
