"""The alert about the credits of the gateway's key."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Sum

from agents.models import ModelCall
from foundation.services.alerts import clear_alert, raise_alert

if TYPE_CHECKING:
    from agents.gateway.client import Gateway

CREDITS_LOW = "credits-low"
COST_PERIOD = timedelta(days=7)
LEAST_USD = Decimal(1)


def refresh_credit_alert(gateway: Gateway, *, now: datetime) -> Decimal | None:
    """Raises the alert where the key's credits last no week at the cost of the last seven days, else clears it.

    Returns the credits left, None where the gateway does not tell.
    """
    from agents.gateway.completions import GatewayFailure  # loads the HTTP client

    try:
        remaining = gateway.remaining_credits()
    except GatewayFailure:  # whose runs have alerts of their own
        return None
    recent = ModelCall.objects.filter(sent_at__gt=now - COST_PERIOD).aggregate(cost=Sum("cost_usd"))["cost"]
    minimum_usd = max(recent or Decimal(0), LEAST_USD)
    if remaining is None or remaining >= minimum_usd:
        clear_alert(CREDITS_LOW, [CREDITS_LOW], at=now)
        return remaining
    raise_alert(
        kind=CREDITS_LOW,
        items={CREDITS_LOW: "the gateway's key"},
        message=f"The gateway's key has ${remaining:.2f} left; a week like the last takes ${minimum_usd:.2f}.",
        at=now,
        path="/admin/",
        remedy="Buy credits, or raise the key's limit at the gateway; the next reconcile_costs resolves this.",
    )
    return remaining
