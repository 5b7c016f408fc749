"""Usage totals, filled with the sums of the calls on record."""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Count, Q, Sum, Value
from django.db.models.functions import Coalesce

import markets.foundation.fields


def sum_calls(apps: Any, schema_editor: Any) -> None:
    total, calls = (apps.get_model("agents", name) for name in ("UsageTotal", "ModelCall"))
    zero = Value(0, output_field=calls._meta.get_field("cost_usd"))
    sums = {
        "calls": Count("*"),
        "tokens_in": Coalesce(Sum("tokens_input"), 0),
        "tokens_out": Coalesce(Sum("tokens_output"), 0),
        "cost": Sum("cost_usd"),
        "stated": Count("cost_source", filter=Q(cost_source="stated")),
        "unconfirmed": Coalesce(Sum("cost_usd", filter=Q(cost_source="booked")), zero),
    }
    columns = ("requests", "tokens_input", "tokens_output", "cost_usd", "stated_costs", "unconfirmed_usd")
    for owner, by in (("agent_id", "decision__agent"), ("family_id", "elicitation__family")):
        grouped = calls.objects.exclude(**{by: None}).order_by().values_list(by).annotate(**sums)
        rows = [total(**dict(zip((owner, *columns), row, strict=True))) for row in grouped]
        total.objects.bulk_create(rows, batch_size=500)


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0007_index_of_links_by_decision"),
    ]

    operations = [
        migrations.CreateModel(
            name="UsageTotal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("requests", models.PositiveIntegerField(default=0)),
                ("tokens_input", models.PositiveBigIntegerField(default=0)),
                ("tokens_output", models.PositiveBigIntegerField(default=0)),
                ("cost_usd", markets.foundation.fields.CostField(default=0)),
                (
                    "stated_costs",
                    models.PositiveIntegerField(default=0, help_text="Calls whose cost the gateway stated."),
                ),
                (
                    "unconfirmed_usd",
                    markets.foundation.fields.CostField(
                        default=0, help_text="The part of the cost that is booked and not confirmed."
                    ),
                ),
                (
                    "agent",
                    models.OneToOneField(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="usage_total",
                        to="agents.agent",
                    ),
                ),
                (
                    "family",
                    models.OneToOneField(
                        blank=True,
                        help_text="The family whose forecasts these are.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="usage_total",
                        to="agents.family",
                    ),
                ),
            ],
            options={
                "ordering": ["agent_id", "family_id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("agent__isnull", False), ("family__isnull", True)),
                            models.Q(("agent__isnull", True), ("family__isnull", False)),
                            _connector="OR",
                        ),
                        name="usage_is_of_an_agent_or_of_a_family",
                    )
                ],
            },
        ),
        migrations.RunPython(sum_calls, migrations.RunPython.noop),
    ]
