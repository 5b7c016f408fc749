"""An operator's settlement of a market whose venue documents no resolution, and its correction."""

from django.db import models
from django.db.models import Q

from foundation.row_hashes import RowHashField
from markets.models import Market, Outcome


class ManualSettlement(models.Model):
    """An operator's resolution of a market, with its reason and source. A correction is a further row."""

    class Kind(models.TextChoices):
        SETTLEMENT = "settlement"
        REVERSAL = "reversal"

    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="manual_settlements")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    winner = models.ForeignKey(
        Outcome, null=True, on_delete=models.PROTECT, related_name="+", help_text="Null where the market was cancelled."
    )
    positions = models.PositiveIntegerField(help_text="Positions that were paid or corrected.")
    reason = models.TextField(help_text="The operator's reason.")
    source = models.CharField(max_length=500, help_text="The source that the operator named for the outcome.")
    settled_by = models.CharField(max_length=150, help_text="The name of the account, which is not published.")
    settled_at = models.DateTimeField()
    row_sha256 = RowHashField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(reason="") & ~Q(source=""), name="manual_settlement_has_reason_and_source"
            ),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.market}"
