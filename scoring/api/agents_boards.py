"""The boards of external agents."""

from django.http import HttpResponseRedirect
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.filters import INSTANT_SCHEMA
from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import ComputedListViewSet, ReportSerializer, published_instant, selected_name
from scoring.constants import CLOSED, FORECAST, TRACKS
from scoring.reports.agents import AGENTS_COLUMNS
from scoring.selectors.leaderboard_entries import PROTOCOLS, read_agents_board


class AgentsBoardEntrySerializer(ReportSerializer):
    """An external agent on the board of its track, or a model or baseline beside it, on the same tasks."""

    columns = AGENTS_COLUMNS


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
