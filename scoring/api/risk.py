"""Luck and risk of the traders."""

from collections.abc import Sequence
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from foundation.rest.filters import check_parameters, past_instant
from foundation.rest.negotiation import FORMAT_PARAMETER
from foundation.rest.pagination import StrictPagination
from foundation.rest.serializers import FIELDS_PARAMETER, field_names, requested_fields, select_fields
from foundation.rest.viewsets import ListView, extend_schema, query_parameter
from scoring.api.base import AS_OF, IntervalField, NumberField, selected_methodology
from scoring.models import Leaderboard
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
    sharpe = NumberField(help_text="Mean weekly return divided by that deviation.")
    sharpe_ci = IntervalField(help_text="95 %, by a studentised bootstrap over calendar weeks; null below six.")
    return_on_locked_capital = NumberField(
        help_text="Profit, in per cent, for a dollar that was locked in positions for a week, at cost."
    )
    first_share = NumberField(
        help_text="Share of 2,000 resamples of the calendar weeks in which its mean return is the highest."
    )
    resolved_stakes = serializers.IntegerField(help_text="Purchases on markets that resolved with a winner.")
    held_profit = serializers.CharField(allow_null=True, help_text="What they made, held to the end, in dollars.")
    odds_bettor_share = NumberField(
        help_text="Share of 10,000 simulations in which a bettor with these stakes makes as much, if each side wins as "
        "often as its price says."
    )
    luckiest_bettor_share = NumberField(
        help_text="Share of them in which the luckiest of such bettors, one for each ranked family, makes as much."
    )


class RiskViewSet(ListView, GenericViewSet):
    """Drawdown, volatility, Sharpe ratio, return on locked capital, and what chance gives, of each family."""

    takes_fields = True
    queryset = Leaderboard.objects.all()
    serializer_class = RiskSerializer
    pagination_class: Any = StrictPagination
    filter_backends = ()

    def row_names(self) -> Sequence[str]:
        names = self.requested_names()
        return [name for name in field_names(RiskSerializer) if name in names]

    def requested_names(self) -> frozenset[str]:
        return requested_fields(self.request, RiskSerializer)

    @extend_schema(
        parameters=[query_parameter("methodology", "A version. Default: over all versions."), AS_OF], filters=False
    )
    def list(self, request: Request) -> Response:
        check_parameters(
            request, {"methodology", "as_of", FIELDS_PARAMETER, FORMAT_PARAMETER} | StrictPagination.parameters
        )
        figures = risk_figures(selected_methodology(request), at=past_instant(request, "as_of"))
        serializer = self.get_serializer(self.paginate_queryset(figures.rows), many=True)
        return self.get_paginated_response(select_fields(serializer, self.requested_names()).data)
