"""Luck and risk of the traders."""

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import ComputedListViewSet, NumberField, selected_methodology
from scoring.selectors.leaderboard_entries import risk_figures


class RiskSerializer(serializers.Serializer):
    """The luck and the risk of a family's trading; rates are fractions."""

    family = serializers.CharField()
    rank = serializers.IntegerField(allow_null=True, help_text="By mean return. Null for external agents.")
    return_percent = serializers.FloatField(help_text="Mean return over cohorts.")
    weeks = serializers.IntegerField(help_text="Calendar weeks in which it had a portfolio.")
    worst_drawdown = serializers.FloatField(
        help_text="Largest fall of one of its portfolios from its highest value before, in per cent, by Sunday values."
    )
    weekly_volatility = NumberField(help_text="Standard deviation of the weekly returns, in percentage points.")
    resolved_stakes = serializers.IntegerField(help_text="Purchases on markets that resolved with a winner.")
    held_profit = serializers.CharField(allow_null=True, help_text="What they made, held to the end, in dollars.")
    odds_bettor_share = NumberField(
        help_text="Share of 10,000 simulations in which a bettor with these stakes makes as much, if each side wins as "
        "often as its price says."
    )
    luckiest_bettor_share = NumberField(
        help_text="Share of them in which the luckiest of such bettors, one for each ranked family, makes as much."
    )


class RiskViewSet(ComputedListViewSet):
    """Drawdown, volatility, and what chance gives, of each family."""

    serializer_class = RiskSerializer

    @extend_schema(parameters=[query_parameter("methodology", "A version. Default: over all versions.")], filters=False)
    def list(self, request: Request) -> Response:
        self.check_parameters("methodology")
        return self.page(risk_figures(selected_methodology(request)).rows)
