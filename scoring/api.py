"""Agents at their worth, snapshots, Brier scores and the leaderboard, for readers."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from agents.api import OfAgent, OfAgentFilters
from agents.models import Agent, Family
from cohorts.models import Cohort, Methodology
from markets.rest import (
    Cursor,
    DecimalText,
    Documented,
    Filters,
    JsonAlways,
    Money,
    Pages,
    ReferenceFilter,
    Row,
    Rows,
    check_parameters,
    query_parameter,
)
from scoring.models import BrierScore, Leaderboard, Snapshot
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.valuations import NO_RECORD, records, valuations

PROTOCOLS = (TRADING, "forecast")


class AgentRow(Row):
    cohort = serializers.IntegerField(source="cohort.number", read_only=True)
    family = serializers.CharField(source="family.slug", read_only=True)
    positions_value = Money(source="worth.positions_value")
    total_value = Money(source="worth.total")
    pnl = Money(source="worth.pnl")
    pnl_percent = DecimalText(places=4, source="worth.pnl_percent", help_text="Of the starting balance.")
    brier = serializers.FloatField(
        source="record.brier", read_only=True, allow_null=True,
        help_text="Mean bet-implied Brier score. Confidence is a share of cash, no probability: not a proper score.",
    )  # fmt: skip
    resolved_bets = serializers.IntegerField(source="record.resolved_bets", read_only=True)
    win_rate = serializers.FloatField(source="record.win_rate", read_only=True, allow_null=True)

    class Meta:
        model = Agent
        fields = (
            "id", "cohort", "family", "release", "model_id", "display_name", "status", "cash", "positions_value",
            "total_value", "pnl", "pnl_percent", "brier", "resolved_bets", "win_rate",
        )  # fmt: skip


class AgentFilters(Filters):
    cohort = ReferenceFilter(Cohort, by="number")
    family = ReferenceFilter(Family, by="slug")

    class Meta:
        model = Agent
        fields = {"release": ["exact"], "status": ["exact"]}


def valued(agents: Sequence[Any]) -> Sequence[Any]:
    """The agents, each with its `worth` at the last accepted prices and its `record`: two queries for all."""
    worth, scores = valuations(agents), records([agent.pk for agent in agents])
    for agent in agents:
        agent.worth, agent.record = worth[agent.pk], scores.get(agent.pk, NO_RECORD)
    return agents


class Agents(Rows):
    """One family's release playing in one cohort, at its worth now."""

    # Prefetched, not joined: every row would carry the methodology's prompts.
    queryset = Agent.objects.select_related("family").prefetch_related("cohort__methodology")
    serializer_class = AgentRow
    filterset_class = AgentFilters
    orderings = {"id": "pk", "cohort": "cohort__number", "family": "family__slug", "cash": "cash"}

    def paginate_queryset(self, queryset: QuerySet[Agent]) -> Sequence[Agent]:  # type: ignore[override]
        return valued(super().paginate_queryset(queryset) or [])

    def get_object(self) -> Agent:
        return valued([super().get_object()])[0]


class SnapshotRow(OfAgent):
    class Meta:
        model = Snapshot
        fields = (
            "agent", "cohort", "family", "taken_at", "cash", "positions_value", "total_value", "pnl",
            "pnl_percent", "brier", "resolved_bets", "open_positions", "stale_positions",
        )  # fmt: skip


class SnapshotFilters(OfAgentFilters):
    class Meta:
        model = Snapshot
        fields = {"agent": ["exact"], "taken_at": ["gte", "lt"]}


class Snapshots(Rows):
    """Portfolios on the ten-minute grid, newest first."""

    queryset = Snapshot.objects.select_related("agent__cohort", "agent__family")
    serializer_class = SnapshotRow
    filterset_class = SnapshotFilters
    orderings = {"taken_at": "taken_at"}
    ordering = ("-taken_at",)
    pagination_class = Cursor


class BrierScoreRow(OfAgent):
    outcome = serializers.SerializerMethodField(help_text="1 if the side won, else 0.")

    class Meta:
        model = BrierScore
        fields = (
            "id", "trade", "agent", "cohort", "family", "market", "probability", "outcome", "score",
            "market_probability", "market_score", "resolved_at", "scored_at",
        )  # fmt: skip

    def get_outcome(self, score: BrierScore) -> int:
        return int(score.outcome)


class BrierScoreFilters(OfAgentFilters):
    class Meta:
        model = BrierScore
        fields = {
            "trade": ["exact"],
            "agent": ["exact"],
            "market": ["exact"],
            "outcome": ["exact"],
            "resolved_at": ["gte", "lt"],
            "scored_at": ["gte", "lt"],
        }


class BrierScores(Rows):
    """The bet-implied Brier score of each purchase on a market that resolved with a winner."""

    queryset = BrierScore.objects.select_related("agent__cohort", "agent__family")
    serializer_class = BrierScoreRow
    filterset_class = BrierScoreFilters
    orderings = {"id": "pk", "score": "score", "resolved_at": "resolved_at", "scored_at": "scored_at"}


def _interval() -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(), min_length=2, max_length=2, allow_null=True)


class LeaderboardEntry(serializers.Serializer):
    """A family on the board, as it was last computed."""

    family = serializers.CharField()
    display_name = serializers.CharField()
    rank = serializers.IntegerField(help_text="By mean return; equal returns share a rank.")
    rank_low = serializers.IntegerField()
    rank_high = serializers.IntegerField()
    cohorts = serializers.IntegerField()
    total_value = serializers.CharField(help_text="Mean over cohorts, in dollars.")
    pnl = serializers.CharField(help_text="Sum over cohorts, in dollars.")
    return_percent = serializers.FloatField(help_text="Mean over cohorts.")
    return_se = serializers.FloatField(allow_null=True)
    return_ci = _interval()
    brier = serializers.FloatField(
        allow_null=True, help_text="Bet-implied, pooled over all bets. Confidence is a share of cash: no proper score."
    )
    brier_ci = _interval()
    bss_random = serializers.FloatField(allow_null=True)
    bss_market = serializers.FloatField(allow_null=True)
    win_rate = serializers.FloatField(allow_null=True)
    resolved_bets = serializers.IntegerField()
    cost_usd = serializers.CharField()


class Leaderboards(GenericViewSet):
    """Who leads, by mean return over cohorts: over all methodologies, or one version's."""

    queryset = Leaderboard.objects.all()
    serializer_class = LeaderboardEntry
    pagination_class: Any = Pages
    content_negotiation_class = JsonAlways
    schema = Documented()
    filter_backends = ()

    @extend_schema(
        parameters=[
            query_parameter("protocol", "Default: trading.", enum=PROTOCOLS),
            query_parameter("methodology", "A version; without one, the board over all."),
        ],
        filters=False,
    )
    def list(self, request: Request) -> Response:
        check_parameters(request, {"protocol", "methodology"} | Pages.parameters)
        protocol = request.query_params.get("protocol", TRADING)
        methodology = request.query_params.get("methodology", ALL_METHODOLOGIES)
        if protocol not in PROTOCOLS:
            raise ValidationError({"protocol": [f"{protocol} is unknown; known are {', '.join(PROTOCOLS)}"]})
        if methodology and not Methodology.objects.filter(version=methodology).exists():
            raise ValidationError({"methodology": [f"no methodology has the version {methodology}"]})
        board = Leaderboard.objects.filter(protocol=protocol, methodology=methodology).first()
        page = self.paginate_queryset(board.entries if board else [])
        return self.get_paginated_response(self.get_serializer(page, many=True).data)
