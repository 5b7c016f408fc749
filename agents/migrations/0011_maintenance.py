from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0010_run_settings"),
    ]

    operations = [
        migrations.CreateModel(
            name="Maintenance",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("began_at", models.DateTimeField(help_text="Wall-clock time.")),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("is_open", models.BooleanField(default=True)),
                ("reason", models.CharField(help_text="Shown on the site's pages.", max_length=200)),
            ],
            options={
                "verbose_name_plural": "maintenance",
                "ordering": ["-began_at"],
                "default_permissions": ("view",),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(is_open=True), fields=["is_open"], name="one_open_maintenance"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(ended_at=None, is_open=True),
                            models.Q(ended_at__isnull=False, is_open=False),
                            _connector="OR",
                        ),
                        name="maintenance_open_until_its_end",
                    ),
                ],
            },
        ),
    ]
