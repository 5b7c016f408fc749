import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0009_price_overrides"),
    ]

    operations = [
        migrations.CreateModel(
            name="RunSetting",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "protocol",
                    models.CharField(choices=[("trading", "decisions"), ("forecast", "forecasts")], max_length=10),
                ),
                ("paused", models.BooleanField(default=False, help_text="Paused ones are left out of runs.")),
                (
                    "spend_limit_usd",
                    models.DecimalField(
                        blank=True,
                        decimal_places=2,
                        help_text=("The most that the protocol may cost in a week; empty for ARENA_SPEND_LIMIT_USD."),
                        max_digits=12,
                        null=True,
                        validators=[django.core.validators.MinValueValidator(0)],
                    ),
                ),
                (
                    "family",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty for every family.",
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to="agents.family",
                    ),
                ),
            ],
            options={
                "ordering": ["protocol", "family_id"],
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("family", None)), fields=("protocol",), name="one_setting_per_protocol"
                    ),
                    models.UniqueConstraint(fields=("protocol", "family"), name="one_setting_per_protocol_and_family"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("spend_limit_usd", None),
                            models.Q(("family", None), ("spend_limit_usd__gte", 0)),
                            _connector="OR",
                        ),
                        name="cap_of_a_protocol",
                    ),
                ],
            },
        ),
    ]
