"""Conditions for markets and questions of which any shown value changed at or after an instant of the real clock."""

from datetime import datetime

from django.db.models import Q

from markets.models import Outcome, QuestionOption


def market_changed(since: datetime) -> Q:
    """The market, or a price of one of its sides."""
    sides = Outcome.objects.filter(updated_at__gte=since).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=sides.values("market"))


def question_changed(since: datetime) -> Q:
    """The question, which changes with its options' outcomes, or a price of an option."""
    options = QuestionOption.objects.filter(outcome__updated_at__gte=since).order_by()
    return Q(updated_at__gte=since) | Q(pk__in=options.values("question"))
