"""Stored trading leaderboards get the fields of tests by week; past ones are out of date until computed anew."""

from datetime import UTC, datetime
from uuid import uuid4

from django.db import migrations

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


def add_fields(apps, schema_editor):
    boards = apps.get_model("scoring", "Leaderboard").objects.filter(protocol="trading").only("entries")
    for board in boards.iterator(chunk_size=100):
        if any("return_se_cohorts" not in entry for entry in board.entries):
            board.entries = [
                {"return_se_cohorts": entry["return_se"], "win_rate_ci": None, "resolved_events": None} | entry
                for entry in board.entries
            ]
            board.save(update_fields=["entries"])
    if apps.get_model("scoring", "LeaderboardHistory").objects.filter(protocol="trading").exists():
        versions = apps.get_model("markets", "CacheVersion").objects.filter(scope="trading_history")
        versions.update(version=uuid4().hex, stale_from=BEGINNING)


class Migration(migrations.Migration):
    dependencies = [("scoring", "0006_ranked_by_adjusted_scores"), ("markets", "0001_initial")]
    operations = [migrations.RunPython(add_fields, migrations.RunPython.noop)]
