"""Families and decisions whose text contains every word of a search."""

from django.db.models import QuerySet

from agents.models import Decision, Family
from markets.selectors.text_search import with_words


def matching_families(families: QuerySet[Family], text: str) -> QuerySet[Family]:
    """Families by name, maker, slug or the id of a release."""
    columns = ("display_name", "provider", "slug", "releases__model_id")
    return with_words(families, text, *columns).distinct()


def matching_decisions(decisions: QuerySet[Decision], text: str) -> QuerySet[Decision]:
    """Decisions by their reasoning."""
    return with_words(decisions, text, "reasoning")
