"""The leaderboard endpoint of both protocols."""

from django.http import HttpResponseRedirect
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.filters import INSTANT_SCHEMA
from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import (
    ARM,
    ComputedListViewSet,
    ReportSerializer,
    published_instant,
    selected_arm,
    selected_category,
    selected_methodology,
    selected_name,
)
from scoring.api.forecasts import ForecastLeaderboardEntrySerializer
from scoring.constants import AFTER_CUTOFF, TRADING
from scoring.reports.trading import TRADING_COLUMNS
from scoring.selectors.leaderboard_entries import PROTOCOLS, leaderboard_entries


class LeaderboardEntrySerializer(ReportSerializer):
    """A family's entry on the trading leaderboard, as last computed."""

    columns = TRADING_COLUMNS


class LeaderboardViewSet(ComputedListViewSet):
    """The leaderboard of a protocol, over all methodologies or of one, now or at a past time.

    Trading: by mean return over cohorts. A category narrows bet-sizing scores, win rate and number of bets to
    markets of that category; values, returns and ranks stay those over all categories, since cash is shared.
    With `protocol=forecast`: by Brier score, for one arm.
    """

    serializer_class = LeaderboardEntrySerializer
    other_serializer_classes = (ForecastLeaderboardEntrySerializer,)

    def row_class(self) -> type[serializers.Serializer]:
        protocol = self.request.query_params.get("protocol", TRADING)
        return LeaderboardEntrySerializer if protocol == TRADING else ForecastLeaderboardEntrySerializer

    @extend_schema(
        parameters=[
            query_parameter("protocol", "Default: trading.", enum=PROTOCOLS),
            query_parameter("methodology", "A version. Default: over all versions."),
            ARM,
            query_parameter("category", "Scores of bets on markets of this category only; values stay over all."),
            query_parameter(
                "created",
                "Forecasts of questions alone that their venue created after the model's knowledge cut-off; "
                "the forecast protocol.",
                enum=(AFTER_CUTOFF,),
            ),
            query_parameter(
                "as_of",
                "The last board published by then: a redirect to its own instant.",
                kind=INSTANT_SCHEMA,
            ),
        ],
        filters=False,
    )
    def list(self, request: Request) -> Response | HttpResponseRedirect:
        self.check_parameters("protocol", "methodology", "arm", "category", "created", "as_of")
        protocol = selected_name(request, "protocol", PROTOCOLS, TRADING)
        methodology, category = selected_methodology(request), selected_category(request)
        arm = ""
        if protocol != TRADING or request.query_params.get("arm"):
            arm = selected_arm(request, methodology)
        if arm and protocol == TRADING:
            raise NotFound("arm: the trading protocol has none; ask with protocol=forecast")
        after_cutoff = bool(selected_name(request, "created", ("", AFTER_CUTOFF), ""))
        if after_cutoff and protocol == TRADING:
            raise NotFound("created: the trading protocol has no such board; ask with protocol=forecast")
        if after_cutoff and category:
            raise NotFound("created: no such board of a category; ask without one")
        at = None
        if "as_of" in request.query_params:
            if after_cutoff:
                raise NotFound("created: no such board is published; ask without as_of")
            at, elsewhere = published_instant(request, protocol, methodology=methodology, arm=arm, category=category)
            if elsewhere is not None:
                return elsewhere
        entries = leaderboard_entries(
            protocol, methodology=methodology, arm=arm, category=category, at=at, after_cutoff=after_cutoff
        )
        return self.page(entries)
