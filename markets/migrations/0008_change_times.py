from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("markets", "0007_indexes_of_lists"),
    ]

    operations = [
        migrations.AddField(
            model_name="market",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
        migrations.AddField(
            model_name="outcome",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
        migrations.AddField(
            model_name="question",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
    ]
