"""Tracks, makers and versions of external agents; those of before are of the closed track, in their first version."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Min
from django.db.models.functions import Lower


def mark_external_agents(apps: Any, schema_editor: Any) -> None:
    family, version = (apps.get_model("agents", name) for name in ("Family", "AgentVersion"))
    externals = family.objects.filter(external=True)
    for agent in externals.annotate(began_at=Min("registrations__registered_at")).exclude(began_at=None):
        version.objects.create(family=agent, number=1, began_at=agent.began_at)
    externals.update(track="closed")


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0011_maintenance"),
    ]

    operations = [
        migrations.CreateModel(
            name="Maker",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=80)),
                ("address", models.EmailField(help_text="Private; in small letters.", max_length=254, unique=True)),
                (
                    "confirmed_at",
                    models.DateTimeField(help_text="The first time that the address was confirmed by mail."),
                ),
            ],
            options={
                "ordering": ["pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(address=Lower("address")), name="maker_address_in_small_letters"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AgentVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveSmallIntegerField(help_text="From 1 on.")),
                ("began_at", models.DateTimeField()),
                (
                    "note",
                    models.CharField(
                        blank=True, help_text="The maker's own words, shown on the agent's page.", max_length=200
                    ),
                ),
                (
                    "family",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="versions", to="agents.family"
                    ),
                ),
            ],
            options={
                "ordering": ["family_id", "number"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=["family", "number"], name="one_agent_version_per_family_and_number"
                    ),
                    models.CheckConstraint(condition=models.Q(number__gte=1), name="agent_versions_count_from_one"),
                ],
            },
        ),
        migrations.AddField(
            model_name="family",
            name="maker",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="families",
                to="agents.maker",
            ),
        ),
        migrations.AddField(
            model_name="family",
            name="track",
            field=models.CharField(
                blank=True,
                choices=[("closed", "closed: only what the task shows"), ("open", "open: tools, search, people")],
                help_text=(
                    "What an external agent may use, as its registration declared; never changed. Empty for models."
                ),
                max_length=6,
            ),
        ),
        migrations.RunPython(mark_external_agents, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="family",
            constraint=models.CheckConstraint(
                condition=models.Q(external=True, track__in=("closed", "open"))
                | models.Q(external=False, track="", maker=None),
                name="external_family_has_a_track",
            ),
        ),
    ]
