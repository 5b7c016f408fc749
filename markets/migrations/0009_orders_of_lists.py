"""Indexes for the offered orders of lists; on PostgreSQL also for those that end with the rows without a value."""

from django.db import migrations, models

from markets.foundation.null_last_indexes import null_last_indexes

NULLS_LAST = {
    "market_by_last_liquidity": ("markets_market", "liquidity"),
    "market_by_last_close": ("markets_market", "closes_at"),
    "market_by_last_resolution": ("markets_market", "resolved_at"),
    "question_by_last_close": ("markets_question", "closes_at"),
    "question_by_last_resolution": ("markets_question", "resolved_at"),
}
"""Tables and columns by the index's name."""


class Migration(migrations.Migration):
    dependencies = [
        ("markets", "0008_change_times"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="market",
            index=models.Index(fields=["liquidity", "id"], name="market_by_liquidity"),
        ),
        null_last_indexes(NULLS_LAST),
    ]
