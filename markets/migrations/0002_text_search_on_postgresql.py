"""Trigram indexes for the search of markets and questions, on PostgreSQL alone; SQLite reads the whole table."""

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations

INDEXES = {
    "market_question_trigrams": ("markets_market", "question"),
    "question_text_trigrams": ("markets_question", "text"),
}
"""Tables and columns by the index's name."""


def create(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for name, (table, column) in INDEXES.items():
            # UPPER, as Django's icontains has it.
            schema_editor.execute(
                f'CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table} USING gin (UPPER("{column}") gin_trgm_ops)'
            )


def drop(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        for name in INDEXES:
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


class Trigrams(TrigramExtension):
    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":  # Django asks only on the way forwards
            super().database_backwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    atomic = False  # an index that is built concurrently keeps no writer waiting

    dependencies = [("markets", "0001_initial")]
    operations = [Trigrams(), migrations.RunPython(create, drop)]
