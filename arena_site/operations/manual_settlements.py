"""Manual settlements, read from the audit log for the market pages and the API."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rest_framework import serializers

from agents.api import ledger as api
from arena_site.dashboard.action import row_path
from arena_site.models import AuditEntry
from markets.models import Market

SETTLE, REVERSE = "settle", "reverse"
"""Names of the actions, whose modules load the gateway."""


@dataclass(frozen=True, slots=True)
class ManualSettlement:
    """A market's resolution by an operator, without the account's name, which stays in the audit log."""

    at: datetime
    message: str
    reason: str
    source: str


def manual_settlements(market: Market) -> list[ManualSettlement]:
    """The manual settlements and reversals of a final market, in order."""
    if not market.is_final:
        return []
    entries = AuditEntry.objects.filter(action__in=(SETTLE, REVERSE), result=AuditEntry.Result.DONE)
    return [_settlement(entry) for entry in entries.filter(path=row_path(market)).order_by("pk")]


def manual_settlements_by_market(markets: Iterable[int]) -> dict[int, ManualSettlement]:
    """The manual settlement of each of these markets that had one, by market id."""
    paths = {row_path(Market(pk=market)): market for market in markets}
    entries = AuditEntry.objects.filter(action=SETTLE, result=AuditEntry.Result.DONE, path__in=paths)
    return {paths[entry.path]: _settlement(entry) for entry in entries.order_by("pk")}


def _settlement(entry: AuditEntry) -> ManualSettlement:
    at = datetime.fromisoformat(entry.after["resolved at"])
    return ManualSettlement(at, entry.message, entry.reason, entry.form_data["source"])


class ManualSettlementRow(serializers.Serializer):
    reason = serializers.CharField(read_only=True, help_text="The operator's reason.")
    source = serializers.CharField(  # type: ignore[assignment]
        read_only=True, help_text="The source that the operator named for the outcome."
    )


class SettlementRow(api.SettlementSerializer):
    manual = ManualSettlementRow(
        read_only=True, allow_null=True,
        help_text="The reason and source where an operator settled the market; null where the venue resolved it.",
    )  # fmt: skip

    class Meta(api.SettlementSerializer.Meta):
        fields = (*api.SettlementSerializer.Meta.fields, "manual")


class Settlements(api.SettlementViewSet):
    """Settlements of positions: paid, worthless or refunded."""

    serializer_class = SettlementRow

    def complete_rows(self, settlements: Sequence[Any]) -> Sequence[Any]:
        """The settlements with `manual` set, in one query, if the field is shown."""
        if self.is_requested("manual"):
            manual = manual_settlements_by_market({settlement.market_id for settlement in settlements})
            for settlement in settlements:
                settlement.manual = manual.get(settlement.market_id)
        return settlements
