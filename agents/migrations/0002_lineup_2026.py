from django.db import migrations

from agents.lineup_2026 import EFFECTIVE_FROM, LINEUP_2026

BY = "the arena"


def register(apps, schema_editor):
    """Families, the release behind each, and the line-up that lists them, approved."""
    Family, Release = apps.get_model("agents", "Family"), apps.get_model("agents", "Release")
    LineUp, LineUpEntry = apps.get_model("agents", "LineUp"), apps.get_model("agents", "LineUpEntry")
    releases = []
    for competitor in LINEUP_2026:
        family, _ = Family.objects.get_or_create(slug=competitor.slug, defaults=competitor.family_fields)
        release, _ = Release.objects.get_or_create(
            family=family, effective_from=EFFECTIVE_FROM, defaults=competitor.release_fields
        )
        releases.append(release)
    if LineUp.objects.exists():
        return
    line_up = LineUp.objects.create(proposed_at=EFFECTIVE_FROM, proposed_by=BY, reason="The line-up of 2026.")
    LineUpEntry.objects.bulk_create(
        LineUpEntry(line_up=line_up, family=release.family, release=release, position=position)
        for position, release in enumerate(releases, start=1)
    )
    line_up.status, line_up.decided_at, line_up.decided_by = "approved", EFFECTIVE_FROM, BY
    line_up.effective_from = EFFECTIVE_FROM
    line_up.save()


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial")]
    operations = [migrations.RunPython(register, migrations.RunPython.noop)]
