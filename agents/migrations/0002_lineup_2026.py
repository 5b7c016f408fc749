from django.db import migrations

from agents.lineup import EFFECTIVE_FROM, LINEUP_2026


def register(apps, schema_editor):
    Family = apps.get_model("agents", "Family")
    Release = apps.get_model("agents", "Release")
    for competitor in LINEUP_2026:
        family, _ = Family.objects.get_or_create(
            slug=competitor.slug,
            defaults={
                "display_name": competitor.display_name,
                "provider": competitor.provider,
                "color": competitor.color,
            },
        )
        Release.objects.get_or_create(
            family=family,
            effective_from=EFFECTIVE_FROM,
            defaults={
                "model_id": competitor.model_id,
                "display_name": competitor.display_name,
                "price_prompt": competitor.price_prompt,
                "price_completion": competitor.price_completion,
            },
        )


def withdraw(apps, schema_editor):
    slugs = [competitor.slug for competitor in LINEUP_2026]
    apps.get_model("agents", "Release").objects.filter(family__slug__in=slugs, agents=None).delete()
    apps.get_model("agents", "Family").objects.filter(slug__in=slugs, agents=None, releases=None).delete()


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial")]
    operations = [migrations.RunPython(register, withdraw)]
