import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0011_maintenance"),
        ("markets", "0012_processes_of_runs"),
    ]

    operations = [
        migrations.AlterField(
            model_name="chain",
            name="protocol",
            field=models.CharField(
                choices=[
                    ("trading", "Trading"),
                    ("forecast", "Forecast"),
                    ("archive", "Archive"),
                    ("receipt", "Receipt"),
                ],
                max_length=20,
                unique=True,
            ),
        ),
        migrations.AlterField(
            model_name="chainlink",
            name="protocol",
            field=models.CharField(
                choices=[
                    ("trading", "Trading"),
                    ("forecast", "Forecast"),
                    ("archive", "Archive"),
                    ("receipt", "Receipt"),
                ],
                max_length=20,
            ),
        ),
        migrations.CreateModel(
            name="SigningKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "fingerprint",
                    models.CharField(help_text="Beginning of the public key's SHA-256.", max_length=16, unique=True),
                ),
                ("public_key", models.CharField(help_text="Ed25519, hex.", max_length=64, unique=True)),
                ("began_at", models.DateTimeField(blank=True, help_text="Null for the first key.", null=True)),
                ("ended_at", models.DateTimeField(blank=True, help_text="Null while it is in use.", null=True)),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ended_at", None),
                            ("began_at", None),
                            ("ended_at__gt", models.F("began_at")),
                            _connector="OR",
                        ),
                        name="a_signing_key_ends_after_it_began",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("version", models.CharField(help_text="The agent's version.", max_length=60)),
                (
                    "origin",
                    models.CharField(
                        choices=[("agent", "reported by the agent"), ("arena", "noted by the arena")], max_length=5
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("raised", "Raised"), ("refused", "Refused"), ("late", "Late"), ("missed", "Missed")],
                        max_length=7,
                    ),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                (
                    "key",
                    models.CharField(help_text="The report's Idempotency-Key, or the arena's own.", max_length=255),
                ),
                ("noted_at", models.DateTimeField()),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="agents.agent",
                    ),
                ),
                (
                    "batch",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="markets.questionbatch",
                    ),
                ),
                (
                    "registration",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="attempts", to="agents.registration"
                    ),
                ),
                (
                    "universe",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="attempts",
                        to="markets.universe",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [models.Index(fields=["noted_at", "id"], name="attempt_by_time")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("registration", "origin", "key"), name="one_attempt_per_origin_and_key"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("agent__isnull", False), ("batch", None), ("universe__isnull", False)),
                            models.Q(("agent", None), ("batch__isnull", False), ("universe", None)),
                            _connector="OR",
                        ),
                        name="attempt_is_at_one_task",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("kind__in", ("raised", "refused", "late")), ("origin", "agent")),
                            models.Q(("kind__in", ("refused", "late", "missed")), ("origin", "arena")),
                            _connector="OR",
                        ),
                        name="attempt_is_of_its_origin",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Receipt",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("sequence", models.PositiveIntegerField(help_text="Its place in the register, from 1.", unique=True)),
                ("agent", models.CharField(help_text="The family's slug.", max_length=80)),
                ("version", models.CharField(help_text="The version of the agent that answered.", max_length=60)),
                ("task", models.CharField(help_text="batch-ID, or agent-ID-universe-ID.", max_length=60)),
                ("answer_sha256", models.CharField(help_text="SHA-256 of the answer as it was sent.", max_length=64)),
                ("prompt_sha256", models.CharField(help_text="SHA-256 of the prompt that was shown.", max_length=64)),
                ("received_at", models.DateTimeField(help_text="Time that was compared with the deadline.")),
                (
                    "previous",
                    models.CharField(
                        help_text="The receipt before it; zeros for the first.", max_length=64, unique=True
                    ),
                ),
                (
                    "sha256",
                    models.CharField(help_text="SHA-256 of the body as canonical JSON.", max_length=64, unique=True),
                ),
                (
                    "signature",
                    models.CharField(help_text="Ed25519 over the body as canonical JSON, hex.", max_length=128),
                ),
                (
                    "submission",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT, related_name="receipt", to="agents.submission"
                    ),
                ),
                (
                    "key",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="receipts",
                        to="agents.signingkey",
                        to_field="fingerprint",
                    ),
                ),
            ],
            options={
                "ordering": ["sequence"],
                "indexes": [models.Index(fields=["received_at", "id"], name="receipt_by_time")],
            },
        ),
    ]
