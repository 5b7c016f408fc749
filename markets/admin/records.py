"""Admin of markets, prices, universes and questions."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef
from django.utils.safestring import SafeString

from foundation.admin.filters import FilterPreset, preset_filter, recent_days_filter
from foundation.admin.readonly import (
    ReadOnlyAdmin,
    ReadOnlyTabularInline,
    changelist_link,
    verbatim_column,
)
from markets.models import (
    CacheVersion,
    EvidenceClaim,
    EvidenceSnippet,
    Market,
    OrderBook,
    Outcome,
    PriceObservation,
    Question,
    QuestionBatch,
    QuestionEntry,
    QuestionOption,
    QuestionSet,
    Universe,
    UniverseEntry,
    VenueTraffic,
)


def _overdue(rows: Any, now: datetime, hours: int) -> Any:
    return rows.traded().overdue(now - timedelta(hours=hours))


class OutcomeInline(ReadOnlyTabularInline):
    model = Outcome
    fields = ("index", "side", "name", "price", "price_at", "price_source", "price_stale", "quote", "bid", "ask")


@admin.register(Market)
class MarketAdmin(ReadOnlyAdmin):
    list_display = ("question", "source", "kind", "status", "category", "volume", "closes_at", "winning_outcome")
    list_filter = (
        preset_filter(
            FilterPreset("closed-24h", "closed or unreadable for 24 hours", lambda rows, now: _overdue(rows, now, 24)),
            FilterPreset("closed-72h", "closed or unreadable for 72 hours", lambda rows, now: _overdue(rows, now, 72)),
            FilterPreset("stale", "traded, at a stale price", lambda rows, now: rows.traded().filter(
                Exists(Outcome.objects.filter(market=OuterRef("pk"), price_stale=True)))),
            FilterPreset("resolved", "resolved or cancelled in the last 24 hours", lambda rows, now: rows.filter(
                resolved_at__gt=now - timedelta(hours=24), resolved_at__lte=now)),
        ),
        "status", "traded", "has_questions", "source", "kind", "accepts_orders",
    )  # fmt: skip
    list_select_related = ("winning_outcome",)
    list_defer = ("description",)
    search_fields = ("question", "category", "slug", "=external_id", "=condition_id", "=event_id")
    ordering = ("-volume", "pk")
    inlines = (OutcomeInline,)


@admin.register(Outcome)
class OutcomeAdmin(ReadOnlyAdmin):
    list_display = ("market", "side", "price", "price_at", "price_source", "price_stale")
    list_filter = (
        preset_filter(FilterPreset("held", "held by an agent, at a stale price", lambda rows, now: rows.filter(
            price_stale=True, positions__status="open").distinct())),
        "price_stale", "price_source",
    )  # fmt: skip
    list_select_related = ("market",)
    search_fields = ("market__question", "side", "=token_id")
    ordering = ("-pk",)


@admin.register(PriceObservation)
class PriceObservationAdmin(ReadOnlyAdmin):
    list_display = ("observed_at", "market", "outcome", "price", "source", "stale", "reason")
    list_filter = ("stale", "source", recent_days_filter("observed_at"))
    list_select_related = ("outcome__market",)
    search_fields = ("=outcome__market__external_id", "=outcome__token_id")
    search_help_text = "The venue's id of a market or token."
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
        return changelist_link(UniverseEntry, "entries", universe__id__exact=universe.pk)

    markets_as_sent = verbatim_column("market_block", "MARKETS block")


@admin.register(UniverseEntry)
class UniverseEntryAdmin(ReadOnlyAdmin):
    list_display = ("universe", "position", "market", "bettable", "open", "prices")
    list_filter = ("bettable", "open")
    list_select_related = ("universe", "market")
    list_defer = ("universe__market_block",)
    search_fields = ("market__question", "=market__external_id")
    ordering = ("-universe_id", "position")


@admin.register(OrderBook)
class OrderBookAdmin(ReadOnlyAdmin):
    list_display = ("universe", "outcome", "captured_at", "fee_rate", "fee_exponent")
    list_select_related = ("universe", "outcome__market")
    list_defer = ("universe__market_block", "bids", "asks")
    search_fields = ("outcome__market__question", "=outcome__token_id")
    ordering = ("-universe_id", "pk")


class OptionInline(ReadOnlyTabularInline):
    model = QuestionOption
    fields = ("index", "name", "outcome", "happened")
    list_select_related = ("outcome",)


@admin.register(Question)
class QuestionAdmin(ReadOnlyAdmin):
    list_display = ("text", "source", "status", "category", "exclusive", "first_asked_at", "closes_at", "resolved_at")
    list_filter = ("status", "source", "exclusive")
    date_hierarchy = "first_asked_at"
    list_defer = ("rules",)
    search_fields = ("text", "category", "=event_key")
    ordering = ("-pk",)
    inlines = (OptionInline,)


@admin.register(QuestionOption)
class QuestionOptionAdmin(ReadOnlyAdmin):
    list_display = ("question", "index", "name", "outcome", "happened")
    list_filter = ("happened",)
    list_select_related = ("question", "outcome")
    list_defer = ("question__rules",)
    search_fields = ("name", "question__text")
    ordering = ("-question_id", "index")


@admin.register(QuestionSet)
class QuestionSetAdmin(ReadOnlyAdmin):
    list_display = ("day", "methodology", "part", "universe", "frozen_at", "sha256", "entries")
    list_filter = ("methodology",)
    list_select_related = ("universe",)
    list_defer = ("universe__market_block",)
    search_fields = ("=sha256", "=methodology")
    date_hierarchy = "day"
    ordering = ("-day", "part")
    fields = (
        "day", "methodology", "part", "universe", "frozen_at", "sha256", "entries", "evidence_sha256",
        "evidence_dropped", "left_out",
    )  # fmt: skip

    def entries(self, question_set: QuestionSet) -> SafeString:
        return changelist_link(QuestionEntry, "entries", question_set__id__exact=question_set.pk)


@admin.register(QuestionBatch)
class QuestionBatchAdmin(ReadOnlyAdmin):
    list_display = ("question_set", "number", "arm")
    list_filter = ("arm",)
    list_select_related = ("question_set",)
    list_defer = ("block", "evidence_block")
    search_fields = ("=question_set__methodology", "block")
    ordering = ("-question_set_id", "number", "arm")
    fields = ("question_set", "number", "arm", "questions_as_sent", "evidence_as_sent")
    questions_as_sent = verbatim_column("block", "QUESTIONS block")
    evidence_as_sent = verbatim_column("evidence_block", "EVIDENCE block")


class SnippetInline(ReadOnlyTabularInline):
    model = EvidenceSnippet
    fields = ("position", "title", "source", "url", "published_at", "retrieved_at", "text", "states_outcome")


@admin.register(QuestionEntry)
class QuestionEntryAdmin(ReadOnlyAdmin):
    list_display = ("question_set", "position", "question", "batch", "reason", "prices")
    list_filter = ("reason",)
    list_select_related = ("question_set", "question")
    list_defer = ("question__rules",)
    search_fields = ("question__text",)
    ordering = ("-question_set_id", "position")
    inlines = (SnippetInline,)


@admin.register(EvidenceSnippet)
class EvidenceSnippetAdmin(ReadOnlyAdmin):
    list_display = ("entry", "position", "title", "source", "published_at", "retrieved_at", "states_outcome")
    list_filter = ("states_outcome",)
    list_select_related = ("entry__question_set", "entry__question")
    list_defer = ("text", "entry__question__rules")
    search_fields = ("title", "source", "=sha256")
    ordering = ("-pk",)


@admin.register(EvidenceClaim)
class EvidenceClaimAdmin(ReadOnlyAdmin):
    list_display = ("day", "methodology", "lease_until")
    search_fields = ("=methodology",)


@admin.register(VenueTraffic)
class VenueTrafficAdmin(ReadOnlyAdmin):
    list_display = ("venue", "requests", "failures", "latency_s")
    search_fields = ("venue",)


@admin.register(CacheVersion)
class CacheVersionAdmin(ReadOnlyAdmin):
    list_display = ("scope", "version")
    search_fields = ("scope",)
    ordering = ("scope",)
