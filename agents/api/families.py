"""REST views of families and releases."""

from typing import Any, cast

from django.db.models import QuerySet
from rest_framework import serializers

from agents.list_filters import matching_families
from agents.models import Family, Release
from agents.models.family import FamilyQuerySet
from foundation.clock import present
from foundation.rest.filters import ReferenceFilter, SearchFilter
from foundation.rest.serializers import ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet


class ReleaseSerializer(ReadSerializer):
    family = serializers.CharField(source="family.slug", read_only=True)
    supported_parameters = serializers.ListField(child=serializers.CharField(), read_only=True, allow_null=True)

    price_overrides = serializers.ListField(
        child=serializers.DictField(), read_only=True, help_text=Release._meta.get_field("price_overrides").help_text
    )

    class Meta:
        model = Release
        fields = (
            "id", "family", "model_id", "display_name", "price_prompt", "price_completion", "effective_from",
            "canonical_slug", "supported_parameters", "context_length", "max_completion_tokens", "price_overrides",
            "released_on", "knowledge_cutoff", "declared_cutoff",
        )  # fmt: skip


class ReleaseViewSet(ReadOnlyViewSet):
    """Releases: the exact models behind the families, with their prices per token."""

    queryset = Release.objects.all()
    serializer_class = ReleaseSerializer
    filterset_fields = ("effective_from",)
    filters = {"family": ReferenceFilter(Family, by="slug")}
    reads_tuples = True
    orderings = ("id", "family", "effective_from")
    ordering_paths = {"family": "family__slug"}


class FamilySerializer(ReadSerializer):
    release = serializers.CharField(read_only=True, allow_null=True, help_text="The gateway's id of its current model.")
    track = serializers.SerializerMethodField(help_text="An external agent's track: closed or open.")
    version = serializers.IntegerField(
        read_only=True, allow_null=True, help_text="The number of an external agent's current version."
    )

    class Meta:
        model = Family
        fields = ("slug", "display_name", "provider", "color", "active", "external", "track", "version", "release")

    def get_track(self, family: Family) -> str | None:
        return family.track or None


class FamilyViewSet(ReadOnlyViewSet):
    """Families: stable competitor slots, whose releases change over time."""

    queryset = Family.objects.all()
    serializer_class = FamilySerializer
    filterset_fields = ("active", "external", "track")
    filters = {"search": SearchFilter(matching_families)}
    lookup_field = "slug"
    lookup_value_regex = r"[a-z0-9][a-z0-9.\-]*"
    orderings = ("slug", "display_name", "provider")

    def get_queryset(self) -> QuerySet[Family]:
        families, now = cast(FamilyQuerySet[Any], super().get_queryset()), present()
        if self.is_requested("release"):
            families = families.with_release(now)
        return families.with_version(now) if self.is_requested("version") else families
