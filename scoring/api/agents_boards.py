"""The boards of external agents."""

from django.http import HttpResponseRedirect
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.filters import INSTANT_SCHEMA
from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import (
    ComputedListViewSet,
    IntervalField,
    NumberField,
    SkillField,
    published_instant,
    selected_name,
)
from scoring.constants import CLOSED, FORECAST, TRACKS
from scoring.selectors.leaderboard_entries import PROTOCOLS, read_agents_board


def _count(help_text: str) -> serializers.IntegerField:
    return serializers.IntegerField(allow_null=True, help_text=help_text)


class AgentsBoardEntrySerializer(serializers.Serializer):
    """An external agent on the board of its track, or a model or baseline beside it, on the same tasks."""

    forecaster = serializers.CharField(help_text="A family's slug, market or uniform.")
    family = serializers.CharField(allow_null=True, help_text="Null for a baseline.")
    display_name = serializers.CharField()
    external = serializers.BooleanField(help_text="An agent of the track; models and baselines are never ranked here.")
    reference = serializers.BooleanField(help_text="A baseline: market or uniform.")
    rank = _count(
        "Among the agents with enough answers: 25 resolved questions or 4 decisions, and half of those asked."
    )
    rank_low = _count("Best rank within the 95 % range.")
    rank_high = _count("Worst rank within the 95 % range.")
    score = NumberField(help_text="Forecasts: the adjusted Brier score. Trading: the mean return in per cent.")
    score_ci = IntervalField(help_text="95 % interval of the score.")
    ranked_by = serializers.CharField(
        allow_null=True,
        help_text="Of forecasts: adjusted_brier, or alpha where the ranked agents answered different questions.",
    )
    price_distance = NumberField(help_text="Mean distance of the probabilities to the market's.")
    repeats_price = serializers.BooleanField(
        allow_null=True,
        help_text="True if it only repeats the price: alpha surely within 0.005 of 0, a distance below 0.02.",
    )
    answered = _count("Resolved questions answered; completed decisions. Null for models that trade.")
    asked = _count("Resolved questions, or decisions, that were asked since the agent's first answer.")
    coverage = NumberField(help_text="answered / asked.")
    failed = _count("Tasks that were answered with nothing that could be carried out.")
    missed = _count("Tasks without an answer in time.")
    refused = _count("Answers that were refused.")
    late = _count("Tasks to which an answer came after the deadline.")
    brier = NumberField(help_text="Mean form.")
    brier_ci = IntervalField(help_text="95 % interval of the Brier score.")
    skill_percent = SkillField()
    alpha = NumberField(help_text="The market's Brier score less the forecaster's, on the same questions.")
    alpha_ci = IntervalField(help_text="95 % interval of alpha.")
    cohorts = _count("Cohorts played.")
    total_value = serializers.CharField(allow_null=True, help_text="Mean over cohorts, in dollars.")
    pnl = serializers.CharField(allow_null=True, help_text="Sum over cohorts, in dollars.")
    win_rate = NumberField(help_text="Share of resolved bets that won.")
    resolved_bets = _count("Bets on markets that resolved.")


class AgentsBoardViewSet(ComputedListViewSet):
    """The board of external agents of a track and a protocol, now or at a past time.

    Agents are ranked among themselves. Models, market and uniform stand beside them on the same questions, or in the
    same cohorts, without a rank. The models' own leaderboards do not depend on any agent.
    """

    serializer_class = AgentsBoardEntrySerializer

    @extend_schema(
        parameters=[
            query_parameter("track", "Default: closed.", enum=TRACKS),
            query_parameter("protocol", "Default: forecast.", enum=PROTOCOLS),
            query_parameter(
                "as_of", "The last board published by then: a redirect to its own instant.", kind=INSTANT_SCHEMA,
            ),
        ],
        filters=False,
    )  # fmt: skip
    def list(self, request: Request) -> Response | HttpResponseRedirect:
        self.check_parameters("track", "protocol", "as_of")
        protocol = selected_name(request, "protocol", PROTOCOLS, FORECAST)
        track = selected_name(request, "track", TRACKS, CLOSED)
        at = None
        if "as_of" in request.query_params:
            at, elsewhere = published_instant(request, protocol, track=track)
            if elsewhere is not None:
                return elsewhere
        board = read_agents_board(protocol, track=track, at=at)
        return self.page(board.entries)
