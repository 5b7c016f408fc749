"""Imported forecasts for readers: collections, where each came from, and their boards."""

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from markets.rest import Filters, Row, Rows
from scoring.models import ForecastImport, ImportCollection, RejectedRow

REJECTIONS_SHOWN = 1_000
"""Rejected rows of an import that one answer holds; `rejected` counts all of them."""


class CollectionRow(Row):
    computed_at = serializers.DateTimeField(source="board.computed_at", read_only=True)
    forecasters = serializers.IntegerField(source="board.forecasters", read_only=True)
    questions = serializers.IntegerField(source="board.questions", read_only=True)
    open_questions = serializers.IntegerField(
        source="board.open_questions", read_only=True, help_text="With forecasts and without an outcome: not scored."
    )
    probabilities = serializers.IntegerField(source="board.probabilities", read_only=True)

    class Meta:
        model = ImportCollection
        fields = (
            "slug", "name", "created_at", "changed_at", "computed_at", "forecasters", "questions", "open_questions",
            "probabilities",
        )  # fmt: skip


class SourceFile(serializers.Serializer):
    name = serializers.CharField()
    sha256 = serializers.CharField()
    bytes = serializers.IntegerField()


class RejectedRowRow(Row):
    class Meta:
        model = RejectedRow
        fields = ("row", "why")


class ImportRow(Row):
    files = SourceFile(many=True, read_only=True)
    rejections = RejectedRowRow(
        source="first_rejections", many=True, read_only=True, help_text=f"The first {REJECTIONS_SHOWN:,} of them."
    )

    class Meta:
        model = ForecastImport
        fields = (
            "format",
            "files",
            "sha256",
            "imported_at",
            "completed",
            "rows",
            "rejected",
            "forecasts",
            "rejections",
        )


class CollectionDetail(CollectionRow):
    imports = ImportRow(many=True, read_only=True)
    board = serializers.SerializerMethodField(
        help_text="What `rank --json` prints, but for the single questions; null while nothing is resolved."
    )

    class Meta(CollectionRow.Meta):
        fields = (*CollectionRow.Meta.fields, "imports", "board")  # type: ignore[assignment]

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_board(self, collection: ImportCollection) -> Any:
        return collection.board.report


class CollectionFilters(Filters):
    class Meta:
        model = ImportCollection
        fields = {"created_at": ["gte", "lt"], "changed_at": ["gte", "lt"]}


class Imports(Rows):
    """Other people's forecasts, ranked by the arena's metrics on boards of their own."""

    queryset = ImportCollection.objects.filter(board__isnull=False).select_related("board")
    serializer_class = CollectionRow
    detail_serializer_class = CollectionDetail
    filterset_class = CollectionFilters
    lookup_field = "slug"
    lookup_value_regex = r"[a-z0-9_\-]{1,100}"
    orderings = {"slug": "slug", "name": "name", "created_at": "created_at", "changed_at": "changed_at"}
    ordering = ("slug",)

    def get_queryset(self) -> QuerySet[ImportCollection]:
        collections = super().get_queryset()
        if not self.detail:
            return collections.defer("board__report")
        completed = ForecastImport.objects.filter(completed=True)
        first = RejectedRow.objects.order_by("row")[:REJECTIONS_SHOWN]
        rejections = Prefetch("rejections", first, "first_rejections")
        return collections.prefetch_related(Prefetch("imports", completed.prefetch_related(rejections)))
