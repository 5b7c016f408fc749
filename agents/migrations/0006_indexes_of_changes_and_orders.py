"""Indexes for lists of changed rows, and for the offered orders of elicitations."""

from django.db import migrations, models

from markets.foundation.null_last_indexes import null_last_indexes


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0005_orders_of_lists"),
        ("cohorts", "0003_methodology_v2"),
        ("markets", "0010_indexes_of_changes_and_orders"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="decision",
            index=models.Index(fields=["updated_at"], name="decision_by_change"),
        ),
        migrations.AddIndex(
            model_name="elicitation",
            index=models.Index(fields=["updated_at"], name="elicitation_by_change"),
        ),
        migrations.AddIndex(
            model_name="elicitation",
            index=models.Index(fields=["made_at", "id"], name="elicitation_by_time"),
        ),
        migrations.AddIndex(
            model_name="modelcall",
            index=models.Index(fields=["updated_at"], name="call_by_change"),
        ),
        migrations.AddIndex(
            model_name="position",
            index=models.Index(fields=["updated_at"], name="position_by_change"),
        ),
        null_last_indexes({"elicitation_by_last_time": ("agents_elicitation", "made_at")}),
    ]
