"""Operators' settings of runs: the weekly spend cap of a protocol, and pauses."""

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from agents.models.family import Family


class RunSetting(models.Model):
    """The spend cap and the pause of a protocol, or of one family in it; both hold at once, without a restart."""

    class Protocol(models.TextChoices):
        TRADING = "trading", "decisions"
        FORECAST = "forecast", "forecasts"

    protocol = models.CharField(max_length=10, choices=Protocol.choices)
    family = models.ForeignKey(
        Family, on_delete=models.PROTECT, null=True, blank=True, help_text="Empty for every family."
    )
    paused = models.BooleanField(default=False, help_text="Paused ones are left out of runs.")
    spend_limit_usd = models.DecimalField(
        max_digits=12,
        decimal_places=2,
        null=True,
        blank=True,
        validators=[MinValueValidator(0)],
        help_text="The most that the protocol may cost in a week; empty for ARENA_SPEND_LIMIT_USD.",
    )

    class Meta:
        default_permissions = ("view",)
        constraints = [
            models.UniqueConstraint(fields=["protocol"], condition=Q(family=None), name="one_setting_per_protocol"),
            models.UniqueConstraint(fields=["protocol", "family"], name="one_setting_per_protocol_and_family"),
            models.CheckConstraint(
                condition=Q(spend_limit_usd=None) | Q(family=None, spend_limit_usd__gte=0), name="cap_of_a_protocol"
            ),
        ]
        ordering = ["protocol", "family_id"]

    def __str__(self) -> str:
        return f"{self.get_protocol_display()} of {self.family or 'every family'}"
