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
from cohorts.forecasting import BLIND, PRICED
from cohorts.models import Cohort, Methodology
from markets.models import Market
from markets.rest import (
    FIELDS,
    INSTANT,
    Cursor,
    DecimalText,
    Filters,
    JsonAlways,
    Money,
    Pages,
    ReferenceFilter,
    Row,
    Rows,
    asked_fields,
    check_parameters,
    past_instant,
    query_parameter,
    thinned,
)
from scoring.forecast_api import ForecastBoardEntry, OfProtocols
from scoring.models import BrierScore, Leaderboard, Snapshot
from scoring.roster import with_company
from scoring.selected import PROTOCOLS, selected_entries
from scoring.services.boards import ALL_METHODOLOGIES, TRADING
from scoring.valuations import NO_RECORD, records, valuations


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


ARMS = (PRICED, BLIND)
WORTH = ("positions_value", "total_value", "pnl", "pnl_percent")
RECORD = ("brier", "resolved_bets", "win_rate")


class Agents(Rows):
    """One family's release playing in one cohort, at its worth now."""

    queryset = Agent.objects.all()
    serializer_class = AgentRow
    filterset_class = AgentFilters
    orderings = {"id": "pk", "cohort": "cohort__number", "family": "family__slug", "cash": "cash"}

    def paginate_queryset(self, queryset: QuerySet[Agent]) -> Sequence[Agent]:  # type: ignore[override]
        return self.valued(super().paginate_queryset(queryset) or [])

    def get_object(self) -> Agent:
        return self.valued([super().get_object()])[0]

    def valued(self, found: Sequence[Any]) -> Sequence[Any]:
        """The agents, each with its `worth` at the last accepted prices and its `record`: a query each, if shown."""
        agents: Sequence[Any] = with_company(found) if self.shows("cohort", "family", *WORTH) else found
        if self.shows(*WORTH):
            worth = valuations(agents)
            for agent in agents:
                agent.worth = worth[agent.pk]
        if self.shows(*RECORD):
            scores = records([agent.pk for agent in agents])
            for agent in agents:
                agent.record = scores.get(agent.pk, NO_RECORD)
        return agents


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

    # Prefetched: joined, the planner may go through all snapshots of every agent for the newest few.
    queryset = Snapshot.objects.prefetch_related("agent__cohort", "agent__family")
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
    external = serializers.BooleanField(help_text="Somebody else's agent, which submits by itself: ranked apart.")
    rank = serializers.IntegerField(
        allow_null=True, help_text="By mean return; equal returns share a rank, externals have none."
    )
    rank_low = serializers.IntegerField(allow_null=True)
    rank_high = serializers.IntegerField(allow_null=True)
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
    """Who leads, by mean return over cohorts: over all methodologies or one version's, now or at a past instant.

    A category narrows the Brier scores, skills, win rate and count of bets to markets of that category. Money is one
    purse for all of them, so values, returns and ranks stay those over all. With `protocol=forecast` the rows are those
    of the forecast boards, by Brier score.
    """

    thins = True
    other_serializer_classes = (ForecastBoardEntry,)
    queryset = Leaderboard.objects.all()
    serializer_class = LeaderboardEntry
    pagination_class: Any = Pages
    content_negotiation_class = JsonAlways
    schema = OfProtocols()
    filter_backends = ()

    @extend_schema(
        parameters=[
            query_parameter("protocol", "Default: trading.", enum=PROTOCOLS),
            query_parameter("methodology", "A version; without one, the board over all."),
            query_parameter("arm", "Of the forecast protocol. Default: priced.", enum=ARMS),
            query_parameter("category", "Scores of bets on markets of this category alone; money stays over all."),
            query_parameter(
                "as_of", "The board as it stood then: newest snapshots, and scores of what was resolved.", kind=INSTANT
            ),
        ],
        filters=False,
    )
    def list(self, request: Request) -> Response:
        check_parameters(request, {"protocol", "methodology", "arm", "category", "as_of", FIELDS} | Pages.parameters)
        protocol = request.query_params.get("protocol", TRADING)
        methodology = request.query_params.get("methodology", ALL_METHODOLOGIES)
        if protocol not in PROTOCOLS:
            raise ValidationError({"protocol": [f"{protocol} is unknown; known are {', '.join(PROTOCOLS)}"]})
        if methodology and not Methodology.objects.filter(version=methodology).exists():
            raise ValidationError({"methodology": [f"no methodology has the version {methodology}"]})
        category = request.query_params.get("category", "")
        if category and not Market.objects.filter(category=category).exists():
            raise ValidationError({"category": [f"no market has the category {category}"]})
        arm = request.query_params.get("arm", "" if protocol == TRADING else PRICED)
        if arm and (protocol == TRADING or arm not in ARMS):
            known = "the trading protocol has none" if protocol == TRADING else f"known are {', '.join(ARMS)}"
            raise ValidationError({"arm": [f"{arm} is unknown; {known}"]})
        at = past_instant(request, "as_of")
        entries = selected_entries(protocol, methodology=methodology, arm=arm, category=category, at=at)
        row = LeaderboardEntry if protocol == TRADING else ForecastBoardEntry
        rows = thinned(row(self.paginate_queryset(entries), many=True), asked_fields(request, row))
        return self.get_paginated_response(rows.data)
