from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0004_change_times"),
        ("markets", "0008_change_times"),
        ("scoring", "0002_merge_categories"),
    ]

    operations = [
        migrations.AddField(
            model_name="brierscore",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
        migrations.AddField(
            model_name="forecastscore",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
    ]
