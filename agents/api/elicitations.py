"""REST views of elicitations, with their calls."""

from typing import Any, cast

from django.db.models import Prefetch, QuerySet
from rest_framework import serializers

from agents.api.tasks import COST_FIELDS, ModelCallSerializer, TaskCostSerializer
from agents.models import Elicitation, Family, ModelCall
from cohorts.models import Methodology
from markets.foundation.rest import KnownChoiceFilter, ReadOnlyViewSet, ReferenceFilter, StrictFilterSet
from markets.prompt_conditions import BLIND, PRICED


class ElicitationSerializer(TaskCostSerializer):
    family = serializers.CharField(source="family.slug", read_only=True)
    methodology = serializers.CharField(source="batch.question_set.methodology", read_only=True)
    arm = serializers.CharField(source="batch.arm", read_only=True)
    day = serializers.DateTimeField(source="batch.question_set.day", read_only=True)

    class Meta:
        model = Elicitation
        fields: tuple[str, ...] = (
            "id", "family", "release", "methodology", "arm", "day", "status", "declined", "error", "tokens_input",
            "tokens_output", "cost_usd", "made_at",
        )  # fmt: skip


class ElicitationDetailSerializer(ElicitationSerializer):
    calls = ModelCallSerializer(many=True, read_only=True)

    class Meta(ElicitationSerializer.Meta):
        fields = (*ElicitationSerializer.Meta.fields, "calls")


class ElicitationFilterSet(StrictFilterSet):
    family = ReferenceFilter(Family, by="slug")
    methodology = ReferenceFilter(Methodology, by="version")
    arm = KnownChoiceFilter([(arm, arm) for arm in (PRICED, BLIND)], field_name="batch__arm")

    class Meta:
        model = Elicitation
        fields = ("release", "status", "declined", "made_at")


class ElicitationViewSet(ReadOnlyViewSet):
    """The tasks of the forecast protocol: one release and one batch of questions each, with tokens and cost."""

    queryset = Elicitation.objects.select_related("family", "batch__question_set").defer("batch__block")
    serializer_class = ElicitationSerializer
    detail_serializer_class = ElicitationDetailSerializer
    filterset_class = ElicitationFilterSet
    orderings = ("id", "made_at")

    def get_queryset(self) -> QuerySet[Elicitation]:
        elicitations: Any = super().get_queryset()
        if self.is_requested(*COST_FIELDS):
            elicitations = elicitations.with_costs()
        if self.detail and self.is_requested("calls"):
            elicitations = elicitations.prefetch_related(Prefetch("calls", ModelCall.objects.order_by("sequence")))
        return cast(QuerySet[Elicitation], elicitations)
