"""Deletes the leaderboards of categories that were merged: the next scoring pass stores those of the merged ones."""

from django.db import migrations

from markets.categories import canonical_category


def clear(apps, schema_editor):
    boards, history = (apps.get_model("scoring", name).objects for name in ("Leaderboard", "LeaderboardHistory"))
    for rows in (boards, history):
        names = rows.order_by().values_list("category", flat=True).distinct()
        merged = {name for name in names if canonical_category(name) != name}
        rows.filter(category__in=merged | {canonical_category(name) for name in merged}).delete()
        if rows is boards and merged:
            # Leaderboards of a selection whose inputs are as recorded would not be computed.
            for board in boards.filter(protocol="forecast", category=""):
                board.report.pop("inputs", None)
                board.save(update_fields=["report"])


class Migration(migrations.Migration):
    dependencies = [("markets", "0002_merge_categories"), ("scoring", "0001_initial")]
    operations = [migrations.RunPython(clear, migrations.RunPython.noop)]
