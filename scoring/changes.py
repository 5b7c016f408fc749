"""Conditions for agents and scored records of which a shown value changed at or after an instant of the real clock."""

from datetime import datetime

from django.db.models import Q

from agents.list_filters import position_changed
from agents.models import Elicitation, Position
from scoring.models import BrierScore, ForecastScore


def agent_changed(since: datetime) -> Q:
    """The agent, its positions or their value, or its record of resolved bets."""
    positions = Position.objects.filter(position_changed(since)).order_by()
    scores = BrierScore.objects.filter(updated_at__gte=since).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=positions.values("agent")) | Q(pk__in=scores.values("agent"))


def forecast_changed(since: datetime) -> Q:
    """The forecast, written with its elicitation, or its scores.

    Subqueries, because PostgreSQL would join all forecasts with their elicitations and scores to compare the times.
    """
    elicitations = Elicitation.objects.filter(updated_at__gte=since).order_by()
    scores = ForecastScore.objects.filter(updated_at__gte=since).order_by()
    return Q(elicitation__in=elicitations.values("pk")) | Q(pk__in=scores.values("forecast"))


def brier_score_changed(since: datetime) -> Q:
    return Q(updated_at__gte=since)
