"""The process of each run, by which one that was killed is known at once."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("markets", "0011_closes_on"),
    ]

    operations = [
        migrations.AddField(
            model_name="run",
            name="process",
            field=models.CharField(
                blank=True, default="", help_text="The machine and the number of its process.", max_length=100
            ),
        ),
    ]
