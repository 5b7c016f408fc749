"""Collections of imported forecasts: their files, rejected rows and leaderboards."""

from django.db.models import Prefetch, QuerySet
from rest_framework import serializers

from foundation.rest.serializers import ReadSerializer
from foundation.rest.viewsets import ReadOnlyViewSet
from scoring.api.base import ObjectField
from scoring.models import ForecastImport, ImportCollection, RejectedRow

MAX_REJECTIONS = 1_000
"""Rejected rows of an import in one response; `rejected` counts all of them."""


class CollectionSerializer(ReadSerializer):
    computed_at = serializers.DateTimeField(source="leaderboard.computed_at", read_only=True)
    forecasters = serializers.IntegerField(source="leaderboard.forecasters", read_only=True)
    questions = serializers.IntegerField(source="leaderboard.questions", read_only=True)
    open_questions = serializers.IntegerField(
        source="leaderboard.open_questions",
        read_only=True,
        help_text="Questions without an outcome, which are not scored.",
    )
    probabilities = serializers.IntegerField(source="leaderboard.probabilities", read_only=True)

    people = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="The forecasters who are people, or medians of people."
    )

    class Meta:
        model = ImportCollection
        fields = (
            "slug", "name", "created_at", "changed_at", "computed_at", "forecasters", "questions", "open_questions",
            "probabilities", "people",
        )  # fmt: skip


class SourceFileSerializer(serializers.Serializer):
    name = serializers.CharField()
    sha256 = serializers.CharField()
    bytes = serializers.IntegerField()


class RejectionSerializer(ReadSerializer):
    class Meta:
        model = RejectedRow
        fields = ("row", "reason")


class ImportSerializer(ReadSerializer):
    files = SourceFileSerializer(many=True, read_only=True)
    rejections = RejectionSerializer(
        source="first_rejections", many=True, read_only=True, help_text=f"The first {MAX_REJECTIONS:,} of them."
    )

    class Meta:
        model = ForecastImport
        fields = (
            "format", "files", "sha256", "imported_at", "completed", "rows", "rejected", "forecasts", "rejections",
        )  # fmt: skip


class CollectionDetailSerializer(CollectionSerializer):
    imports = ImportSerializer(many=True, read_only=True)
    leaderboard = ObjectField(
        source="leaderboard.report",
        read_only=True,
        help_text="The JSON of `rank`, without single questions; `people_gap` is the best model less the best people, "
        "`skill_percent` by name 100 times the skill over equal probabilities. Null while no question is resolved.",
    )

    class Meta(CollectionSerializer.Meta):
        fields = (*CollectionSerializer.Meta.fields, "imports", "leaderboard")  # type: ignore[assignment]


class ImportViewSet(ReadOnlyViewSet):
    """Imported forecasts of others, ranked by the arena's metrics on leaderboards of their own."""

    queryset = ImportCollection.objects.filter(leaderboard__isnull=False).select_related("leaderboard")
    serializer_class = CollectionSerializer
    detail_serializer_class = CollectionDetailSerializer
    filterset_fields = ("created_at", "changed_at")
    lookup_field = "slug"
    lookup_value_regex = r"[a-z0-9_\-]{1,100}"
    orderings = ("slug", "name", "created_at", "changed_at")
    ordering = ("slug",)

    def get_queryset(self) -> QuerySet[ImportCollection]:
        collections = super().get_queryset()
        if not self.detail:
            return collections.defer("leaderboard__report")
        completed = ForecastImport.objects.filter(completed=True)
        first = RejectedRow.objects.order_by("row")[:MAX_REJECTIONS]
        rejections = Prefetch("rejections", first, "first_rejections")
        return collections.prefetch_related(Prefetch("imports", completed.prefetch_related(rejections)))
