"""Checks of `doctor` on this machine and its services: what a setting names is used once, without a trace."""

import smtplib
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from operator import attrgetter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.core.mail import get_connection
from django.db import DatabaseError, connection, connections, transaction
from django.utils import timezone

from arena_site.models import HostClaim, Worker
from arena_site.operations.backups import BackupFailed, tool
from arena_site.operations.conditions import WATCHED
from arena_site.operations.worker_watch import REMEDY as START_WORKER
from cohorts.models import Cohort
from foundation.http import USER_AGENT, one_line

SAFE_SQLITE = (3, 51, 3)
"""Before it, several processes could corrupt a file in WAL mode."""
TIMEOUT_S = 10
READY = 250
"""SMTP's answer to a command that was done."""
GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
"""With the errors of servers, the answers to a HEAD that say that a POST would fail too."""


@dataclass(frozen=True, slots=True)
class Item:
    """The result of a check. `remedy` is empty where nothing is to be done; beside an `ok` it is a warning's."""

    name: str
    ok: bool
    detail: str
    remedy: str


def item(name: str, ok: bool, detail: str, remedy: str = "") -> Item:
    return Item(name, ok, detail, "" if ok else remedy)


def folder_items() -> Iterator[Item]:
    """The folders that are written to, where each is or will be made."""
    for name in ("ARENA_SPOOL_DIR", "ARENA_BACKUP_DIR", "ARENA_EXPORT_DIR"):
        folder = Path(getattr(settings, name)).absolute()
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        label = f"{name.split('_')[1].lower()} folder"
        try:
            with tempfile.TemporaryFile(dir=existing) as file:
                file.write(b"arena")
        except OSError as error:
            remedy = f"Let this account write to it, or set {name}."
            yield item(label, False, f"{folder} can not be written to: {error.strerror}", remedy)
        else:
            yield item(label, True, f"{folder} can be written to")


def alert_channel_items() -> Iterator[Item]:
    """The mail server's greeting, and a HEAD to the webhook and the dead-man service."""
    if settings.ARENA_ALERT_EMAIL and str(settings.EMAIL_BACKEND).endswith("smtp.EmailBackend"):
        yield _mail_item()
    for name in ("ARENA_ALERT_WEBHOOK", "ARENA_HEARTBEAT_URL"):
        if address := getattr(settings, name):
            yield _address_item(name, str(address))


def _mail_item() -> Item:
    mail: Any = get_connection(timeout=TIMEOUT_S)
    server, fault = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}", ""
    try:
        mail.open()
        code, _ = mail.connection.ehlo()
        fault = "" if code == READY else f"it answers EHLO with {code}"
        mail.close()
    except (OSError, smtplib.SMTPException) as error:
        fault = one_line(error) or type(error).__name__
    remedy = "Correct EMAIL_URL (server, port, account and its smtp+tls or smtp+ssl)."
    return item("mail server", not fault, f"{server}: {fault}" if fault else f"{server} answers EHLO", remedy)


def _address_item(name: str, address: str) -> Item:
    """The address itself is a secret."""
    import httpx

    label, remedy = name.split("_", 1)[1].replace("_", " ").lower(), f"Correct {name}."
    try:
        status = httpx.head(address, timeout=TIMEOUT_S, headers={"User-Agent": USER_AGENT}).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return item(label, False, f"can not be reached: {type(error).__name__}", remedy)
    is_there = status not in GONE and (
        status < HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.NOT_IMPLEMENTED
    )
    return item(label, is_there, f"answers HEAD with {status}", remedy)


def service_items() -> Iterator[Item]:
    """The shared cache and the replica, where the settings name them."""
    if "LOCATION" in settings.CACHES["default"]:
        fault = ""
        try:
            cache.set("doctor", 1, TIMEOUT_S)
            fault = "" if cache.get("doctor") == 1 else "does not give back what was stored"
            cache.delete("doctor")
        except Exception as error:  # of the cache's own client
            fault = type(error).__name__
        yield item("cache", not fault, fault or "stores and gives back", "Start the server that CACHE_URL names.")
    if "replica" in connections.settings:
        fault = ""
        try:
            with connections["replica"].cursor() as cursor:
                cursor.execute("SELECT 1 FROM django_migrations")
        except DatabaseError as error:
            fault = one_line(error)
        remedy = "Start the server that DATABASE_REPLICA_URL names, or leave it empty."
        yield item("replica", not fault, fault or "can be read", remedy)


def record_items(now: datetime) -> Iterator[Item]:
    """Writing to the database, guards of the record, workers, and whether a demo's settings meet a live database."""
    fault = ""
    try:
        with transaction.atomic():
            Worker.objects.create(name="doctor", seen_at=now)
            transaction.set_rollback(True)
    except DatabaseError as error:
        fault = one_line(error)
    yield item("writing", not fault, fault or "a row was written and rolled back", "Make room and end long writers.")
    for condition in filter(attrgetter("name"), WATCHED):
        findings = condition.findings(now)
        is_fault = condition.is_urgent(findings)
        detail = condition.message(findings) if findings else "nothing found"
        remedy = condition.remedy_of(findings) if findings else ""
        yield Item(condition.name, not is_fault, detail, remedy)
    if settings.ARENA_DEMO:
        is_live = HostClaim.objects.exclude(host_id="").exists()
        detail = "ARENA_DEMO is true on a database that a live arena works on" if is_live else "a demo's own database"
        yield item(
            "demo", not is_live, detail, "Take ARENA_DEMO out of .env, or give the demo a DATABASE_URL of its own."
        )
    else:
        yield _worker_item(now)


def _worker_item(now: datetime) -> Item:
    worker = Worker.objects.first()
    if worker is not None:
        detail = f"{worker.name} seen {worker.seen_at:%Y-%m-%d %H:%M:%S} UTC"
        return item("worker", worker.is_alive(now), detail, START_WORKER)
    if Cohort.objects.active().exists():
        return Item("worker", True, "none has been seen: jobs run by command alone", "Start one: manage.py arena.")
    return item("worker", True, "none has been seen yet")


def database_program_items() -> Iterator[Item]:
    """PostgreSQL's programs for backups, or the version of SQLite."""
    if connection.vendor == "postgresql":
        try:
            connection.ensure_connection()
            path = tool("pg_dump", server=int(connection.pg_version) // 10_000)  # type: ignore[attr-defined]
        except (BackupFailed, DatabaseError) as error:
            yield item(
                "pg_dump", False, one_line(error), "Install PostgreSQL's client programs of the server's version."
            )
        else:
            yield item("pg_dump", True, f"{path} is fit for the server")
        return
    if sqlite3.sqlite_version_info >= SAFE_SQLITE:
        yield item("sqlite", True, sqlite3.sqlite_version)
    else:  # no ✗: the demo and a trial run on what Python brings, and few have another
        detail = f"{sqlite3.sqlite_version}: below 3.51.3 several processes can, rarely, corrupt the file"
        yield Item("sqlite", True, detail, "Use PostgreSQL for anything public, or Python with a newer SQLite.")


def installation_items(*, has_tables: bool) -> Iterator[Item]:
    """Every item; those of the record where there are tables."""
    yield from folder_items()
    yield from alert_channel_items()
    yield from service_items()
    yield from database_program_items()
    if has_tables:
        yield from record_items(timezone.now())
