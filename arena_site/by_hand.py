"""What pages and the API say of what operators did to their subject; the audit log is where it is known."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from agents import api
from agents.models import Settlement
from arena_site.desk.act import row_path
from arena_site.desk.acts.markets import Settle
from arena_site.desk.acts.reversals import Reverse
from arena_site.models import AuditEntry
from markets.models import Market


@dataclass(frozen=True, slots=True)
class EndByHand:
    """An end that an operator gave a market; who it was stays in the audit log."""

    at: datetime
    said: str
    reason: str
    source: str


def ends_by_hand(market: Market) -> list[EndByHand]:
    """The ends that a final market was given by hand, the last one last."""
    if not market.is_final:
        return []
    done = AuditEntry.objects.filter(act__in=(Settle.name, Reverse.name), result=AuditEntry.Result.DONE)
    return [_end(entry) for entry in done.filter(path=row_path(market)).order_by("pk")]


def settled_by_hand(markets: Iterable[int]) -> dict[int, EndByHand]:
    """By market id, the end by which its positions were settled, of those to which an operator gave it."""
    paths = {row_path(Market(pk=market)): market for market in markets}
    done = AuditEntry.objects.filter(act=Settle.name, result=AuditEntry.Result.DONE, path__in=paths)
    return {paths[entry.path]: _end(entry) for entry in done.order_by("pk")}


def _end(entry: AuditEntry) -> EndByHand:
    at = datetime.fromisoformat(entry.after["resolved at"])
    return EndByHand(at, entry.message, entry.reason, entry.asked["source"])


class ByHandRow(serializers.Serializer):
    reason = serializers.CharField(read_only=True, help_text="Why, as the operator said.")
    source = serializers.CharField(  # type: ignore[assignment]
        read_only=True, help_text="Where the end can be read, as the operator said."
    )


class SettlementRow(api.SettlementRow):
    by_hand = ByHandRow(
        read_only=True, allow_null=True,
        help_text="Where an operator gave the market its end, why and by what source; null where the venue did.",
    )  # fmt: skip

    class Meta(api.SettlementRow.Meta):
        fields = (*api.SettlementRow.Meta.fields, "by_hand")


class Settlements(api.Settlements):
    """The ends of positions: paid, worthless or refunded."""

    serializer_class = SettlementRow

    def paginate_queryset(self, queryset: QuerySet[Settlement]) -> Sequence[Settlement]:  # type: ignore[override]
        return self.told(super().paginate_queryset(queryset) or [])

    def get_object(self) -> Settlement:
        return self.told([super().get_object()])[0]

    def told(self, settlements: Sequence[Any]) -> Sequence[Any]:
        """The settlements, each with what an operator said of its market's end, in one query, if it is shown."""
        if self.shows("by_hand"):
            ends = settled_by_hand({settlement.market_id for settlement in settlements})
            for settlement in settlements:
                settlement.by_hand = ends.get(settlement.market_id)
        return settlements
