from django.db import migrations

from cohorts.methodologies.v1 import V1
from cohorts.methodologies.v2 import V2
from cohorts.methodologies.v3 import V3


def ship(apps, schema_editor):
    for methodology in (V1, V2, V3):
        versions = apps.get_model("cohorts", "Methodology").objects
        versions.get_or_create(version=methodology["version"], defaults=methodology)


class Migration(migrations.Migration):
    dependencies = [("cohorts", "0001_initial")]
    operations = [migrations.RunPython(ship, migrations.RunPython.noop)]
