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
    IntervalField,
    NumberField,
    published_instant,
    selected_arm,
    selected_category,
    selected_methodology,
    selected_name,
)
from scoring.api.forecasts import ForecastLeaderboardEntrySerializer
from scoring.constants import AFTER_CUTOFF, TRADING
from scoring.selectors.leaderboard_entries import PROTOCOLS, leaderboard_entries


class LeaderboardEntrySerializer(serializers.Serializer):
    """A family's entry on the trading leaderboard, as last computed."""

    family = serializers.CharField()
    display_name = serializers.CharField()
    external = serializers.BooleanField(help_text="An external agent, which submits by itself and is ranked apart.")
    rank = serializers.IntegerField(
        allow_null=True, help_text="By mean return; equal returns share a rank. Null for external agents."
    )
    rank_low = serializers.IntegerField(
        allow_null=True, help_text="1 plus the number of families that are significantly better."
    )
    rank_high = serializers.IntegerField(
        allow_null=True, help_text="Number of families less those that are significantly worse."
    )
    cohorts = serializers.IntegerField()
    total_value = serializers.CharField(help_text="Mean over cohorts, in dollars.")
    pnl = serializers.CharField(help_text="Sum over cohorts, in dollars.")
    return_percent = serializers.FloatField(help_text="Mean over cohorts.")
    return_se = NumberField(help_text="Standard error of the mean return, with calendar weeks as clusters (CR3).")
    return_se_cohorts = NumberField(
        help_text="s / √n over cohorts, as the sources have it: too small, since cohorts share weeks and markets."
    )
    return_ci = IntervalField(
        help_text="95 % interval over calendar weeks. With fewer than about twelve cohorts one rare shared win can "
        "still fall outside."
    )
    brier = NumberField(help_text="Bet-sizing score over all bets. Confidence is a share of cash: not a proper score.")
    brier_ci = IntervalField()
    bss_random = NumberField()
    bss_market = NumberField()
    win_rate = NumberField()
    win_rate_ci = IntervalField(
        help_text="95 % interval over events; never leaves 0 to 1; allows for one unseen event. Null below four events."
    )
    resolved_bets = serializers.IntegerField()
    resolved_events = serializers.IntegerField(
        allow_null=True, help_text="Events of these bets; fewer than four give no interval."
    )
    cost_usd = serializers.CharField()
    return_before_costs = NumberField(
        help_text="Mean return at midpoints over the cohorts of which no order book is missing. Null at a past time."
    )
    return_after_costs = NumberField(
        help_text="Mean return of the same trades after spreads, the depth of the captured books and the venue's fee."
    )
    return_after_costs_ci = IntervalField(
        help_text="95 % interval of the mean return after costs over calendar weeks, as that of the return."
    )
    vanished_share = NumberField(
        help_text="Share of the profit at midpoints over these cohorts that costs take; null without a profit."
    )
    liquidation_value = serializers.CharField(
        allow_null=True, help_text="Mean cash with the holdings sold to the bids of the last books, in dollars."
    )
    cohorts_with_books = serializers.IntegerField(allow_null=True, help_text="Cohorts of which no book is missing.")
    trades_without_book = serializers.IntegerField(
        allow_null=True,
        help_text="Trades without a book or a known fee; the other figures leave their cohorts out.",
    )


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
