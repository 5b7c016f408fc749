"""Indexes for lists of changed rows."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0006_indexes_of_changes_and_orders"),
        ("markets", "0010_indexes_of_changes_and_orders"),
        ("scoring", "0004_orders_of_lists"),
    ]

    operations = [
        migrations.AddIndex(
            model_name="brierscore",
            index=models.Index(fields=["updated_at"], name="brier_by_change"),
        ),
        migrations.AddIndex(
            model_name="forecastscore",
            index=models.Index(fields=["updated_at"], name="forecast_score_by_change"),
        ),
    ]
