"""Conditions for records of agents of which any shown value changed at or after an instant of the real clock.

Trades and settlements never change. They are written in one transaction with their decision and position, whose time
of change is theirs.
"""

from datetime import datetime

from django.db.models import Q

from agents.models import ModelCall, Position


def decision_changed(since: datetime) -> Q:
    """The decision, or the tokens or cost of one of its calls."""
    calls = ModelCall.objects.filter(updated_at__gte=since, decision__isnull=False).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=calls.values("decision"))


def trade_changed(since: datetime) -> Q:
    return Q(decision__updated_at__gte=since)


def position_changed(since: datetime) -> Q:
    """The position, or the price that an open one is valued at."""
    return Q(updated_at__gte=since) | Q(status=Position.Status.OPEN, outcome__updated_at__gte=since)


def settlement_changed(since: datetime) -> Q:
    return Q(position__updated_at__gte=since)
