from django.db import migrations

from cohorts.methodologies.v2 import V2


def publish(apps, schema_editor):
    apps.get_model("cohorts", "Methodology").objects.get_or_create(version=V2["version"], defaults=V2)


class Migration(migrations.Migration):
    dependencies = [("cohorts", "0002_methodology_v1")]
    operations = [migrations.RunPython(publish, migrations.RunPython.noop)]
