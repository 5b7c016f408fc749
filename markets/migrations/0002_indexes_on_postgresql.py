"""Indexes on PostgreSQL alone: trigrams for the search, and descending orders that end with rows without a value."""

from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations

from foundation.raw_sql import postgres_indexes


class Trigrams(TrigramExtension):
    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor == "postgresql":  # Django asks only on the way forwards
            super().database_backwards(app_label, schema_editor, from_state, to_state)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("markets", "0001_initial")]
    operations = [
        Trigrams(),
        postgres_indexes(
            {  # UPPER, as Django's icontains has it
                "market_question_trigrams": 'markets_market USING gin (UPPER("question") gin_trgm_ops)',
                "question_text_trigrams": 'markets_question USING gin (UPPER("text") gin_trgm_ops)',
                "market_by_last_liquidity": "markets_market (liquidity DESC NULLS LAST, id DESC)",
                "market_by_last_close": "markets_market (closes_at DESC NULLS LAST, id DESC)",
                "market_by_last_resolution": "markets_market (resolved_at DESC NULLS LAST, id DESC)",
                "question_by_last_close": "markets_question (closes_at DESC NULLS LAST, id DESC)",
                "question_by_last_resolution": "markets_question (resolved_at DESC NULLS LAST, id DESC)",
            }
        ),
    ]
