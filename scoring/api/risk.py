"""Luck and risk of the traders."""

from rest_framework.request import Request
from rest_framework.response import Response

from foundation.rest.viewsets import extend_schema, query_parameter
from scoring.api.base import ComputedListViewSet, ReportSerializer, selected_methodology
from scoring.reports.trading import RISK_COLUMNS
from scoring.selectors.leaderboard_entries import risk_figures


class RiskSerializer(ReportSerializer):
    """The luck and the risk of a family's trading; rates are fractions."""

    columns = RISK_COLUMNS


class RiskViewSet(ComputedListViewSet):
    """Drawdown, volatility, and what chance gives, of each family."""

    serializer_class = RiskSerializer

    @extend_schema(parameters=[query_parameter("methodology", "A version. Default: over all versions.")], filters=False)
    def list(self, request: Request) -> Response:
        self.check_parameters("methodology")
        return self.page(risk_figures(selected_methodology(request)).rows)
