"""Manual settlements and reversals: an operator's resolution of a market, stored in the transaction that pays on it."""

from datetime import datetime

from django.db import transaction

from agents.models import ManualSettlement
from agents.services.envelopes import require_opened
from agents.services.resolutions import Resolution
from agents.services.reversals import reverse_settlement
from agents.services.settlement import settle_market
from markets.models import Market

Kind = ManualSettlement.Kind


def settle_manually(
    market: Market, resolution: Resolution, *, source: str, reason: str, by: str, at: datetime
) -> ManualSettlement | None:
    """Settles a closed market as an operator says; None if it was final already. Raises AnswerWaits."""
    with transaction.atomic():
        require_opened(market)
        settled = settle_market(market, resolution, at=at)
        if settled is None:
            return None
        return _store(Kind.SETTLEMENT, market, resolution, settled, source=source, reason=reason, by=by, at=at)


def reverse_manually(
    market: Market, resolution: Resolution, *, source: str, reason: str, by: str, at: datetime
) -> ManualSettlement | None:
    """Gives a final market another resolution; None if it has that one already.

    Raises InsufficientCash or AnswerWaits.
    """
    with transaction.atomic():
        corrected = reverse_settlement(market, resolution, by=by, reason=f"{reason} (source: {source})", at=at)
        if corrected is None:
            return None
        return _store(Kind.REVERSAL, market, resolution, corrected, source=source, reason=reason, by=by, at=at)


def _store(
    kind: Kind,
    market: Market,
    resolution: Resolution,
    positions: int,
    *,
    source: str,
    reason: str,
    by: str,
    at: datetime,
) -> ManualSettlement:
    return ManualSettlement.objects.create(
        market=market,
        kind=kind,
        winner=resolution.winner,
        positions=positions,
        reason=reason,
        source=source,
        settled_by=by,
        settled_at=at,
    )
