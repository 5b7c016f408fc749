"""Past leaderboards are cached under their inputs: no scope has a version of the past."""

from typing import Any

from django.db import migrations, models


def delete_past_versions(apps: Any, editor: Any) -> None:
    past = apps.get_model("markets", "CacheVersion").objects.using(editor.connection.alias)
    past.filter(scope__in=("trading_history", "forecast_history")).delete()


class Migration(migrations.Migration):
    dependencies = [("markets", "0002_text_search_on_postgresql")]
    operations = [
        migrations.RunPython(delete_past_versions, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField("cacheversion", "stale_from"),
        migrations.AlterField(
            "cacheversion",
            "scope",
            models.CharField(
                choices=[
                    ("competition", "families, cohorts, methodologies and agents"),
                    ("snapshots", "snapshots"),
                    ("leaderboards", "current leaderboards"),
                ],
                max_length=20,
                unique=True,
            ),
        ),
    ]
