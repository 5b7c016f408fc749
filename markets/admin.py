"""Markets, prices, universes, runs and alerts, for the operator."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString

from markets.models import Alert, Market, Outcome, PriceObservation, Run, Universe, UniverseEntry
from markets.readonly import ReadOnlyAdmin, ReadOnlyTable, list_link, verbatim, verbatim_json


class OutcomeTable(ReadOnlyTable):
    model = Outcome
    fields = ("index", "side", "name", "price", "price_at", "price_source", "price_stale", "quote", "bid", "ask")


@admin.register(Market)
class MarketAdmin(ReadOnlyAdmin):
    list_display = ("question", "source", "kind", "status", "category", "volume", "closes_at", "winning_outcome")
    list_filter = ("status", "followed", "source", "kind", "accepts_orders", "closed_at", "resolved_at")
    list_select_related = ("winning_outcome",)
    list_defer = ("description",)
    search_fields = ("question", "category", "slug", "=external_id", "=condition_id", "=event_id")
    ordering = ("-volume", "pk")
    inlines = (OutcomeTable,)


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    list_display = ("market", "side", "price", "price_at", "price_source", "price_stale")
    list_filter = ("price_stale", "price_source")
    list_select_related = ("market",)
    search_fields = ("market__question", "side", "=token_id")
    ordering = ("-pk",)


@admin.register(PriceObservation)
class PriceObservationAdmin(ReadOnlyAdmin):
    list_display = ("observed_at", "market", "outcome", "price", "source", "stale", "reason")
    list_filter = ("stale", "source", "observed_at")
    list_select_related = ("outcome__market",)
    search_fields = ("=outcome__market__external_id", "=outcome__token_id")
    search_help_text = "A market's id at its venue, or a token's."
    ordering = ("-observed_at", "-pk")

    def market(self, observation: PriceObservation) -> Market:
        return observation.outcome.market


@admin.register(Universe)
class UniverseAdmin(ReadOnlyAdmin):
    list_display = ("week_start", "methodology", "frozen_at", "sha256", "entries")
    list_filter = ("methodology",)
    list_defer = ("market_block",)
    search_fields = ("=sha256", "=methodology")
    date_hierarchy = "week_start"
    ordering = ("-week_start",)
    fields = ("week_start", "methodology", "frozen_at", "sha256", "entries", "markets_as_sent")

    def entries(self, universe: Universe) -> SafeString:
        return list_link(UniverseEntry, "entries", universe__id__exact=universe.pk)

    @admin.display(description="MARKETS block")
    def markets_as_sent(self, universe: Universe) -> SafeString:
        return verbatim(universe.market_block)


@admin.register(UniverseEntry)
class UniverseEntryAdmin(ReadOnlyAdmin):
    list_display = ("universe", "position", "market", "bettable", "open", "prices")
    list_filter = ("bettable", "open")
    list_select_related = ("universe", "market")
    list_defer = ("universe__market_block",)
    search_fields = ("market__question", "=market__external_id")
    ordering = ("-universe_id", "position")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    list_display = ("kind", "at", "status", "started_at", "finished_at", "error")
    list_filter = ("status", "kind", "started_at")
    list_defer = ("log",)
    search_fields = ("kind", "error")
    date_hierarchy = "at"
    ordering = ("-started_at", "-pk")
    fields = ("kind", "at", "status", "started_at", "finished_at", "error", "summary", "log_lines")

    @admin.display(description="log")
    def log_lines(self, run: Run) -> SafeString:
        return verbatim("\n".join(map(str, run.log))) if isinstance(run.log, list) else verbatim_json(run.log)


@admin.register(Alert)
class AlertAdmin(ReadOnlyAdmin):
    """Alerts clear when their cause is gone; a person may acknowledge one, on the record."""

    list_display = ("message", "kind", "subject", "raised_at", "cleared_at")
    list_filter = (("cleared_at", admin.EmptyFieldListFilter), "kind")
    search_fields = ("message", "=subject", "kind")
    date_hierarchy = "raised_at"
    ordering = ("-raised_at",)
    actions: Any = ("acknowledge",)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("markets.change_alert")  # type: ignore[union-attr]

    @admin.action(description="Acknowledge the chosen alerts", permissions=["acknowledge"])
    def acknowledge(self, request: HttpRequest, alerts: QuerySet[Alert]) -> None:
        acknowledged = 0
        for alert in alerts.filter(cleared_at=None):
            if Alert.objects.clear(alert.kind, alert.subject, timezone.now()):
                self.log_change(request, alert, "Acknowledged.")
                acknowledged += 1
        self.message_user(request, f"{acknowledged} acknowledged.")
