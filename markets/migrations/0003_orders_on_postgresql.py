"""Indexes for descending orders that end with the rows without a value, on PostgreSQL."""

from django.db import migrations

from foundation.raw_sql import postgres_indexes


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("markets", "0002_text_search_on_postgresql")]
    operations = [
        postgres_indexes(
            {
                "market_by_last_liquidity": "markets_market (liquidity DESC NULLS LAST, id DESC)",
                "market_by_last_close": "markets_market (closes_at DESC NULLS LAST, id DESC)",
                "market_by_last_resolution": "markets_market (resolved_at DESC NULLS LAST, id DESC)",
                "question_by_last_close": "markets_question (closes_at DESC NULLS LAST, id DESC)",
                "question_by_last_resolution": "markets_question (resolved_at DESC NULLS LAST, id DESC)",
            }
        )
    ]
