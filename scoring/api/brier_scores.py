"""Bet-implied Brier scores of purchases."""

from rest_framework import serializers

from agents.api.agent_records import AgentRecordFilterSet, AgentRecordSerializer
from markets.foundation.rest import ReadOnlyViewSet
from scoring.models import BrierScore


class BrierScoreSerializer(AgentRecordSerializer):
    outcome = serializers.SerializerMethodField(help_text="1 if the side won, else 0.")

    class Meta:
        model = BrierScore
        fields = (
            "id", "trade", "agent", "cohort", "family", "market", "probability", "outcome", "score",
            "market_probability", "market_score", "resolved_at", "scored_at",
        )  # fmt: skip

    def get_outcome(self, score: BrierScore) -> int:
        return int(score.outcome)


class BrierScoreFilterSet(AgentRecordFilterSet):
    class Meta:
        model = BrierScore
        fields = ("trade", "agent", "market", "outcome", "resolved_at", "scored_at")


class BrierScoreViewSet(ReadOnlyViewSet):
    """The bet-implied Brier score of each purchase on a market that resolved with a winner."""

    queryset = BrierScore.objects.select_related("agent__cohort", "agent__family")
    serializer_class = BrierScoreSerializer
    filterset_class = BrierScoreFilterSet
    orderings = ("id", "score", "resolved_at", "scored_at")
