from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0003_chain_of_archives"),
        ("cohorts", "0003_methodology_v2"),
        ("markets", "0008_change_times"),
    ]

    operations = [
        migrations.AddField(
            model_name="agent",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
        migrations.AddField(
            model_name="decision",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
        migrations.AddField(
            model_name="elicitation",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
        migrations.AddField(
            model_name="modelcall",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
        migrations.AddField(
            model_name="position",
            name="updated_at",
            field=models.DateTimeField(auto_now=True, help_text="Wall-clock time, in replays too.", null=True),
        ),
    ]
