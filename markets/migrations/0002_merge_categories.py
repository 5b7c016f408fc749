"""Gives markets and questions the one name of categories that venues call differently."""

from django.db import migrations

from markets.categories import canonical_category


def merge(apps, schema_editor):
    for name in ("Market", "Question"):
        rows = apps.get_model("markets", name).objects.order_by()
        for category in rows.values_list("category", flat=True).distinct():
            if canonical_category(category) != category:
                rows.filter(category=category).update(category=canonical_category(category))


class Migration(migrations.Migration):
    atomic = False  # each update keeps its locks no longer than it takes
    dependencies = [("markets", "0001_initial")]
    operations = [migrations.RunPython(merge, migrations.RunPython.noop)]
