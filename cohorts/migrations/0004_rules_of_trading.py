from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("cohorts", "0003_methodology_v2")]
    operations = [
        migrations.AddField(
            "methodology",
            "trading",
            models.JSONField(
                default=dict,
                blank=True,
                help_text="Rules of the trading protocol that came later; empty in versions without them.",
            ),
        ),
    ]
