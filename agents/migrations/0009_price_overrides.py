from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0008_usage_totals"),
    ]

    operations = [
        migrations.AddField(
            model_name="release",
            name="price_overrides",
            field=models.JSONField(
                blank=True,
                default=list,
                help_text=(
                    "Prices that replace these under conditions (length of prompt, hour), as the gateway's catalogue "
                    "states them. Estimates and limits take the highest that can apply."
                ),
            ),
        ),
    ]
