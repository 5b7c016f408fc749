"""Families and decisions whose text contains every word of a search."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from agents.models import Decision, Family, Release
from markets.selectors.text_search import in_columns, with_each_word, with_words


def matching_families(families: QuerySet[Family], text: str) -> QuerySet[Family]:
    """Families by name, maker, slug or the id of a release."""
    return with_each_word(families, text, _in_family)


def _in_family(word: str) -> Q:
    releases = Release.objects.filter(family=OuterRef("pk"), model_id__icontains=word)
    return in_columns(word, ("display_name", "provider", "slug")) | Q(Exists(releases))


def matching_decisions(decisions: QuerySet[Decision], text: str) -> QuerySet[Decision]:
    """Decisions by their reasoning."""
    return with_words(decisions, text, "reasoning")
