"""Admin of positions, trades, settlements, reversals and the cash journal."""

from typing import ClassVar

from django.contrib import admin

from agents.models import JournalEntry, ManualSettlement, Position, Reversal, Settlement, Trade
from foundation.admin.filters import FilterPreset, NewestRelatedFilter, preset_filter, recent_days_filter
from foundation.admin.readonly import ReadOnlyAdmin
from markets.models import Market


class AgentMarketAdmin(ReadOnlyAdmin):
    """Base for records of an agent on a market."""

    list_select_related: ClassVar[tuple[str, ...]] = ("agent", "market")
    list_defer = ("market__description",)
    search_fields: ClassVar[tuple[str, ...]] = ("=id", "market__question", "agent__display_name")


@admin.register(Position)
class PositionAdmin(AgentMarketAdmin):
    list_display = ("id", "agent", "market", "outcome", "status", "shares", "cost_basis", "realized_pnl", "opened_at")
    list_filter = (
        preset_filter(
            FilterPreset("waiting", "open on a closed market", lambda rows, now: rows.open().filter(
                market__status="closed")),
            FilterPreset("stale", "open at a stale price", lambda rows, now: rows.open().filter(
                outcome__price_stale=True)),
        ),
        "status", "agent__family", ("agent__cohort", NewestRelatedFilter),
    )  # fmt: skip
    list_select_related = ("agent", "market", "outcome")
    date_hierarchy = "opened_at"
    ordering = ("-pk",)


@admin.register(Trade)
class TradeAdmin(AgentMarketAdmin):
    list_display = ("id", "agent", "kind", "market", "outcome", "shares", "price", "amount", "executed_at")
    list_filter = ("kind", recent_days_filter("executed_at"), "agent__family", ("agent__cohort", NewestRelatedFilter))
    list_select_related = ("agent", "market", "outcome")
    ordering = ("-pk",)


@admin.register(Settlement)
class SettlementAdmin(AgentMarketAdmin):
    list_display = ("id", "agent", "market", "kind", "shares", "cost_basis", "payout", "realized_pnl", "settled_at")
    list_filter = ("kind", "agent__family", ("agent__cohort", NewestRelatedFilter))
    date_hierarchy = "settled_at"


@admin.register(Reversal)
class ReversalAdmin(AgentMarketAdmin):
    list_display = (
        "id", "agent", "market", "kind", "previous_payout", "payout", "reversed_by", "reversed_at", "reason",
    )  # fmt: skip
    list_filter = ("kind", "agent__family", "agent__cohort")
    search_fields = ("=id", "market__question", "agent__display_name", "reason")
    date_hierarchy = "reversed_at"
    ordering = ("-reversed_at", "-pk")


@admin.register(ManualSettlement)
class ManualSettlementAdmin(ReadOnlyAdmin):
    list_display = ("id", "market", "kind", "winner", "positions", "settled_by", "settled_at", "reason", "source")
    list_filter = ("kind",)
    list_select_related = ("market", "winner")
    list_defer = ("market__description",)
    search_fields = ("=id", "market__question", "reason", "source")
    date_hierarchy = "settled_at"
    ordering = ("-settled_at", "-pk")


@admin.register(JournalEntry)
class JournalEntryAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "sequence", "kind", "amount", "balance", "market", "occurred_at")
    list_filter = ("kind", recent_days_filter("occurred_at"), "agent__family", ("agent__cohort", NewestRelatedFilter))
    list_select_related = ("agent", "trade__market", "settlement__market")
    search_fields = ("=id", "agent__display_name")
    ordering = ("-pk",)

    def market(self, entry: JournalEntry) -> Market | None:
        cause = entry.trade or entry.settlement
        return cause.market if cause else None
