from django.db import migrations

from cohorts.methodologies.v1 import V1


def publish(apps, schema_editor):
    apps.get_model("cohorts", "Methodology").objects.get_or_create(version=V1["version"], defaults=V1)


class Migration(migrations.Migration):
    dependencies = [("cohorts", "0001_initial")]
    operations = [migrations.RunPython(publish, migrations.RunPython.noop)]
