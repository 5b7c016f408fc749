"""The money: positions, trades, settlements and the journal; for the operator."""

from django.contrib import admin

from agents.models import (
    JournalEntry,
    Position,
    Reversal,
    Settlement,
    Trade,
)
from markets.list_filters import Look, NewestRelated, days, looks
from markets.models import Market
from markets.quick_lists import QuickAdmin
from markets.readonly import ReadOnlyAdmin


@admin.register(Position)
class PositionAdmin(QuickAdmin):
    list_display = ("id", "agent", "market", "outcome", "status", "shares", "cost_basis", "realized_pnl", "opened_at")
    list_filter = (
        looks(
            Look("waiting", "open on a closed market", lambda rows, now: rows.open().filter(market__status="closed")),
            Look("stale", "open at a stale price", lambda rows, now: rows.open().filter(outcome__price_stale=True)),
        ),
        "status", "agent__family", ("agent__cohort", NewestRelated),
    )  # fmt: skip
    list_select_related = ("agent", "market", "outcome")
    list_defer = ("market__description",)
    search_fields = ("=id", "market__question", "agent__display_name")
    date_hierarchy = "opened_at"
    ordering = ("-pk",)


@admin.register(Trade)
class TradeAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "kind", "market", "outcome", "shares", "price", "amount", "executed_at")
    list_filter = ("kind", days("executed_at"), "agent__family", ("agent__cohort", NewestRelated))
    list_select_related = ("agent", "market", "outcome")
    list_defer = ("market__description",)
    search_fields = ("=id", "market__question", "agent__display_name")
    ordering = ("-pk",)


@admin.register(Settlement)
class SettlementAdmin(QuickAdmin):
    list_display = ("id", "agent", "market", "kind", "shares", "cost_basis", "payout", "realized_pnl", "settled_at")
    list_filter = ("kind", "agent__family", ("agent__cohort", NewestRelated))
    list_select_related = ("agent", "market")
    list_defer = ("market__description",)
    search_fields = ("=id", "market__question", "agent__display_name")
    date_hierarchy = "settled_at"
    ordering = ("-settled_at", "-pk")


@admin.register(Reversal)
class ReversalAdmin(QuickAdmin):
    list_display = ("id", "agent", "market", "kind", "taken_back", "payout", "reversed_by", "reversed_at", "reason")
    list_filter = ("kind", "agent__family", "agent__cohort")
    list_select_related = ("agent", "market")
    list_defer = ("market__description",)
    search_fields = ("=id", "market__question", "agent__display_name", "reason")
    date_hierarchy = "reversed_at"
    ordering = ("-reversed_at", "-pk")


@admin.register(JournalEntry)
class JournalEntryAdmin(ReadOnlyAdmin):
    list_display = ("id", "agent", "sequence", "kind", "amount", "balance", "market", "occurred_at")
    list_filter = ("kind", days("occurred_at"), "agent__family", ("agent__cohort", NewestRelated))
    list_select_related = ("agent", "trade__market", "settlement__market")
    search_fields = ("=id", "agent__display_name")
    ordering = ("-pk",)

    def market(self, entry: JournalEntry) -> Market | None:
        cause = entry.trade or entry.settlement
        return cause.market if cause else None
