"""Indexes for the offered orders of lists; on PostgreSQL also for those that end with the rows without a value."""

from django.db import migrations, models

from markets.foundation.null_last_indexes import null_last_indexes

NULLS_LAST = {
    "position_by_last_close": ("agents_position", "closed_at"),
    "decision_by_last_instant": ("agents_decision", "decided_at"),
}
"""Tables and columns by the index's name."""


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0004_change_times"),
        ("cohorts", "0003_methodology_v2"),
        ("markets", "0009_orders_of_lists"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="chainlink",
            index=models.Index(fields=["sequence", "id"], name="link_by_sequence"),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["week", "id"], name="decision_by_week"),
        ),
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["decided_at", "id"], name="decision_by_instant"),
        ),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(fields=["occurred_at", "id"], name="journal_by_time"),
        ),
        migrations.AddIndex(
            model_name="journalentry",
            index=models.Index(fields=["sequence", "id"], name="journal_by_sequence"),
        ),
        migrations.AddIndex(
            model_name="position",
            index=models.Index(fields=["cost_basis", "id"], name="position_by_cost_basis"),
        ),
        migrations.AddIndex(
            model_name="position",
            index=models.Index(fields=["realized_pnl", "id"], name="position_by_realized_pnl"),
        ),
        migrations.AddIndex(
            model_name="position",
            index=models.Index(fields=["opened_at", "id"], name="position_by_opening"),
        ),
        migrations.AddIndex(
            model_name="position",
            index=models.Index(fields=["closed_at", "id"], name="position_by_close"),
        ),
        migrations.AddIndex(
            model_name="settlement",
            index=models.Index(fields=["settled_at", "id"], name="settlement_by_time"),
        ),
        migrations.AddIndex(
            model_name="settlement",
            index=models.Index(fields=["payout", "id"], name="settlement_by_payout"),
        ),
        migrations.AddIndex(
            model_name="settlement",
            index=models.Index(fields=["realized_pnl", "id"], name="settlement_by_realized_pnl"),
        ),
        migrations.AddIndex(
            model_name="trade",
            index=models.Index(fields=["executed_at", "id"], name="trade_by_time"),
        ),
        migrations.AddIndex(
            model_name="trade",
            index=models.Index(fields=["amount", "id"], name="trade_by_amount"),
        ),
        null_last_indexes(NULLS_LAST),
    ]
