from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("agents", "0005_replicates")]

    operations = [
        migrations.AddField(
            model_name="release",
            name="schema_beside_search",
            field=models.BooleanField(
                blank=True,
                help_text="Does the model keep to an answer's schema beside a search tool, as `doctor --test-search` "
                "found? Where it was not tested, the schema is sent, and left out once it is refused.",
                null=True,
            ),
        ),
    ]
