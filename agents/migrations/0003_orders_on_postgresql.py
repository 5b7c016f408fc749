"""Indexes for descending orders that end with the rows without a value, on PostgreSQL."""

from django.db import migrations

from foundation.raw_sql import postgres_indexes


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("agents", "0002_lineup_2026")]
    operations = [
        postgres_indexes(
            {
                "position_by_last_close": "agents_position (closed_at DESC NULLS LAST, id DESC)",
                "decision_by_last_instant": "agents_decision (decided_at DESC NULLS LAST, id DESC)",
                "elicitation_by_last_time": "agents_elicitation (made_at DESC NULLS LAST, id DESC)",
            }
        )
    ]
