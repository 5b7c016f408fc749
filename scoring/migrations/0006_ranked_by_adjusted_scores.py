"""Stored forecast leaderboards name the score that ranks; `rebuild_derived` ranks past ones anew."""

from django.db import migrations

NEW_FIELDS = {"ranked_by": "brier"} | dict.fromkeys(
    ("adjusted_brier_ci", "weighted_brier_ci", "irt_ability_ci", "bt_ability_ci")
)


def add_fields(apps, schema_editor):
    for name in ("Leaderboard", "LeaderboardHistory"):
        boards = apps.get_model("scoring", name).objects.filter(protocol="forecast").only("entries")
        for board in boards.iterator(chunk_size=100):
            if any("ranked_by" not in entry for entry in board.entries):
                board.entries = [NEW_FIELDS | entry for entry in board.entries]
                board.save(update_fields=["entries"])


class Migration(migrations.Migration):
    dependencies = [("scoring", "0005_indexes_of_changes_and_orders")]
    operations = [migrations.RunPython(add_fields, migrations.RunPython.noop)]
