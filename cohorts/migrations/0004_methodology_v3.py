from django.db import migrations

from cohorts.methodologies.v3 import V3


def ship(apps, schema_editor):
    apps.get_model("cohorts", "Methodology").objects.get_or_create(version=V3["version"], defaults=V3)


class Migration(migrations.Migration):
    dependencies = [("cohorts", "0003_methodology_v2")]
    operations = [migrations.RunPython(ship, migrations.RunPython.noop)]
