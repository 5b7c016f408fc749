"""Past leaderboards of forecasts are computed anew: they did not name the score that ranks."""

from django.db import migrations


def delete_past_leaderboards(apps, schema_editor):
    apps.get_model("scoring", "LeaderboardHistory").objects.filter(protocol="forecast").delete()


class Migration(migrations.Migration):
    dependencies = [("scoring", "0005_indexes_of_changes_and_orders")]
    operations = [migrations.RunPython(delete_past_leaderboards, migrations.RunPython.noop)]
