"""Conditions of lists: rows that changed at or after an instant of the real clock, rows whose text holds each word."""

from datetime import datetime

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Decision, Family, ModelCall, Position, Release
from markets.selectors.list_filters import in_columns, with_each_word, with_words


def decision_changed(since: datetime) -> Q:
    """The decision, or the tokens or cost of one of its calls."""
    calls = ModelCall.objects.filter(updated_at__gte=since, decision__isnull=False).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=calls.values("decision"))


def trade_changed(since: datetime) -> Q:
    return Q(decision__updated_at__gte=since)


def position_changed(since: datetime) -> Q:
    """The position, or the price that an open one is valued at."""
    return Q(updated_at__gte=since) | Q(status=Position.Status.OPEN, outcome__updated_at__gte=since)


def settlement_changed(since: datetime) -> Q:
    return Q(position__updated_at__gte=since)


def matching_families(families: QuerySet[Family], text: str) -> QuerySet[Family]:
    """Families by name, maker, slug or the id of a release."""
    return with_each_word(families, text, _in_family)


def _in_family(word: str) -> Q:
    releases = Release.objects.filter(family=OuterRef("pk"), model_id__icontains=word)
    return in_columns(word, ("display_name", "provider", "slug")) | Q(Exists(releases))


def matching_decisions(decisions: QuerySet[Decision], text: str) -> QuerySet[Decision]:
    """Decisions by their reasoning."""
    return with_words(decisions, text, "reasoning")
