"""Conditions for agents and scored records of which a shown value changed at or after an instant of the real clock."""

from datetime import datetime

from django.db.models import Q

from agents.changes import position_changed
from agents.models import Position
from scoring.models import BrierScore


def agent_changed(since: datetime) -> Q:
    """The agent, its positions or their value, or its record of resolved bets."""
    positions = Position.objects.filter(position_changed(since)).order_by()
    scores = BrierScore.objects.filter(updated_at__gte=since).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=positions.values("agent")) | Q(pk__in=scores.values("agent"))


def forecast_changed(since: datetime) -> Q:
    """The forecast, written with its elicitation, or its scores."""
    return Q(elicitation__updated_at__gte=since) | Q(score__updated_at__gte=since)


def brier_score_changed(since: datetime) -> Q:
    return Q(updated_at__gte=since)
