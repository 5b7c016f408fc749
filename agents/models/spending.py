"""Readings of the key's credits."""

from django.db import models

from foundation.fields import CostField


class CreditReading(models.Model):
    """The key's total usage at an instant. Two readings bound the cost of the calls between them."""

    read_at = models.DateTimeField(help_text="Wall-clock time, in replays too.")
    key_label = models.CharField(max_length=200, help_text="The gateway's name of the key, not the key.")
    used_usd = CostField(
        help_text="Dollars spent since the key was created, including costs billed by providers whose keys are our own."
    )

    class Meta:
        indexes = [models.Index(fields=["key_label", "-read_at"], name="reading_by_key_and_time")]
        ordering = ["-read_at"]

    def __str__(self) -> str:
        return f"{self.used_usd} used by {self.read_at:%Y-%m-%d %H:%M}"
