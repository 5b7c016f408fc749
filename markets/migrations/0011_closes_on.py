"""The day of a question's close as each prompt showed it, so that the question's own may follow its markets."""

import json
from datetime import date

from django.db import migrations, models


def read_from_prompts(apps, schema_editor):
    """Fills the days of entries from the blocks that were shown: the last column of each line but the first."""
    batches, entries = (apps.get_model("markets", name) for name in ("QuestionBatch", "QuestionEntry"))
    filled = set()
    for batch in batches.objects.order_by("pk").iterator(chunk_size=500):
        if (batch.question_set_id, batch.number) in filled:
            continue  # the arms differ in prices alone
        filled.add((batch.question_set_id, batch.number))
        for line in batch.block.split("\n")[1:]:
            question, *_, closes = json.loads(line)
            if closes is not None:
                entry = entries.objects.filter(question_set=batch.question_set_id, question=question)
                entry.update(closes_on=date.fromisoformat(closes))


class Migration(migrations.Migration):
    dependencies = [("markets", "0010_indexes_of_changes_and_orders")]
    operations = [
        migrations.AddField(
            model_name="questionentry",
            name="closes_on",
            field=models.DateField(
                blank=True, help_text="Day of the scheduled close at the freeze, as prompts show it.", null=True
            ),
        ),
        migrations.AlterField(
            model_name="question",
            name="closes_at",
            field=models.DateTimeField(
                blank=True, help_text="Scheduled close, which follows its markets while it is open.", null=True
            ),
        ),
        migrations.RunPython(read_from_prompts, migrations.RunPython.noop),
    ]
