"""Recognises databases that this version may not touch: those of another layout, and those of a later version.

Initial migrations were edited until version 1.0.0, under the same names. A database whose stored layout is not that of
these files, or that stores none, would be migrated half.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings

from foundation.version import VERSION

RUNS, LAYOUT = "foundation_run", "foundation_databaselayout"
"""A table by which an arena's database is recognised, and that of its layout."""
BEFORE_LAYOUTS = "a version before 1.0.0"
QUERY = f"SELECT layout, made_by, migrated_by FROM {LAYOUT}"  # noqa: S608 - our own name
ID_LENGTH = 12


@dataclass(frozen=True, slots=True)
class StoredLayout:
    """What a database says of itself."""

    layout: str
    made_by: str
    migrated_by: str


@cache
def layout_id() -> str:
    """The hash over the initial migrations of this version."""
    digest = sha256()
    for folder in sorted(_migration_folders().values()):
        digest.update((folder / "0001_initial.py").read_bytes())
    return digest.hexdigest()[:ID_LENGTH]


def layout_refusal(connection: Any) -> str:
    """Why this version may not touch a database, in one line; empty where it may, and where the database is empty."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        if RUNS not in tables:
            return ""
        stored = None
        if LAYOUT in tables:
            cursor.execute(QUERY)
            stored = next((StoredLayout(*row) for row in cursor.fetchall()), None)
        if refusal := stored_layout_refusal(stored):
            return refusal
        cursor.execute("SELECT app, name FROM django_migrations")
        applied = cursor.fetchall()
    unknown = [f"{app}.{name}" for app, name in applied if _is_unknown(app, name)]
    if stored and unknown:
        return (
            f"the database was migrated by version {stored.migrated_by} ({unknown[-1]}), and this is version "
            f"{VERSION}: run that version, or restore the backup that was made before its upgrade"
        )
    return ""


def stored_layout_refusal(stored: StoredLayout | None) -> str:
    """Why a database with this layout, or without one, may not be touched; empty where it may."""
    if stored and stored.layout == layout_id():
        return ""
    maker = f"version {stored.made_by} with another layout" if stored else BEFORE_LAYOUTS
    return f"the database was made by {maker}: start anew with an empty one, or run that version; nothing was changed"


def _is_unknown(app: str, name: str) -> bool:
    folder = _migration_folders().get(app)
    return folder is not None and not (folder / f"{name}.py").is_file()


@cache
def _migration_folders() -> dict[str, Path]:
    """The migrations of each app of the arena, by its label."""
    return dict(_arena_apps())


def _arena_apps() -> Iterator[tuple[str, Path]]:
    for app in apps.get_app_configs():
        folder = Path(app.path) / "migrations"
        if Path(app.path).parent == settings.BASE_DIR and folder.is_dir():
            yield app.label, folder
