"""Indexes for the offered orders of runs."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("markets", "0009_orders_of_lists"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["started_at", "id"], name="run_by_start"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["at", "id"], name="run_by_instant"),
        ),
    ]
