"""What the migrations put into an empty database, put back after a test that emptied it."""

from importlib import import_module

from django.apps import apps

FIRST_ROWS = (
    ("cohorts.migrations.0002_methodology_v1", "publish"),
    ("cohorts.migrations.0003_methodology_v2", "publish"),
    ("agents.migrations.0002_lineup_2026", "register"),
)
"""The migrations that fill tables, and what fills them."""


def put_back() -> None:
    """Makes the rows that are not there."""
    for name, insert in FIRST_ROWS:
        getattr(import_module(name), insert)(apps, None)
