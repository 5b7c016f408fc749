"""The index by which the newest link of each cohort is found."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0006_indexes_of_changes_and_orders")]

    operations = [
        migrations.AddIndex(
            model_name="chainlink",
            index=models.Index(fields=["decision", "sequence"], name="link_by_decision"),
        ),
    ]
