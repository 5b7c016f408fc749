"""The host that serves this database: a restored copy, or a second host, does nothing until it is told to."""

import hashlib
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import connection

from arena_site.models import HostClaim
from foundation.process_names import machine

MACHINE_ID = Path("/etc/machine-id")
"""Stable across restarts; containers have none, and are told apart by their database alone."""
ID_LENGTH = 16


def host_id() -> str:
    """ARENA_HOST_ID, or an id that follows from the machine and the database's place."""
    return settings.ARENA_HOST_ID or _default_id()


def _default_id() -> str:
    try:
        machine_id = MACHINE_ID.read_text().strip()
    except OSError:
        machine_id = ""
    name = str(connection.settings_dict["NAME"])
    database = str(Path(name).resolve()) if connection.vendor == "sqlite" else name
    return hashlib.sha256(f"{machine_id}\n{database}".encode()).hexdigest()[:ID_LENGTH]


def host_refusal() -> str:
    """Why this host may not work on the database, in one line; empty where it may.

    A database that no `arena` has claimed is anybody's: several machines may run its workers.
    """
    claim = HostClaim.objects.first()
    if claim is None or claim.host_id == host_id():
        return ""
    remedy = "to let this host work on it, run: manage.py arena --take-over"
    if not claim.host_id:
        return f"this database was restored from a backup and waits; {remedy}"
    return f"this database is served by host {claim.host_id} ({claim.machine}), and this is {host_id()}; {remedy}"


def has_claims_table() -> bool:
    """False before the first migration, and in a copy of an earlier version."""
    return HostClaim._meta.db_table in connection.introspection.table_names()


def claim_host(*, at: datetime) -> None:
    """Stores that this host serves the database, unless another does."""
    values = {"host_id": host_id(), "machine": machine().rstrip(":"), "claimed_at": at}
    HostClaim.objects.get_or_create(pk=HostClaim.ONLY, defaults=values)


def take_over(*, at: datetime) -> None:
    """Stores that this host serves the database, whichever did."""
    values = {"host_id": host_id(), "machine": machine().rstrip(":"), "claimed_at": at}
    HostClaim.objects.update_or_create(pk=HostClaim.ONLY, defaults=values)


def release_host(*, at: datetime) -> None:
    """Stores that no host serves the database: each waits until one takes it over."""
    values = {"host_id": "", "machine": "", "claimed_at": at}
    HostClaim.objects.update_or_create(pk=HostClaim.ONLY, defaults=values)
