"""Resolutions of closed markets, read from their venues' rows."""

from dataclasses import dataclass

from agents.models import Settlement
from markets.models import Market, Outcome
from markets.services.market_storage import match_outcomes
from markets.sources.base import Catalogue, Unresolved, VenueMarket


@dataclass(frozen=True, slots=True)
class Resolution:
    """The final result of a market: its winning outcome, or None if it was cancelled."""

    winner: Outcome | None

    @property
    def market_status(self) -> Market.Status:
        return Market.Status.RESOLVED if self.winner else Market.Status.CANCELLED

    def settlement_kind(self, outcome_id: int) -> Settlement.Kind:
        """The kind of settlement of a position in an outcome."""
        if self.winner is None:
            return Settlement.Kind.REFUNDED
        return Settlement.Kind.WON if outcome_id == self.winner.pk else Settlement.Kind.LOST

    def __str__(self) -> str:
        return f"{self.winner.side} won" if self.winner else "cancelled"


CANCELLATION = Resolution(winner=None)


def read_resolution(market: Market, row: VenueMarket, catalogue: Catalogue) -> Resolution | Unresolved:
    """The resolution that a closed market's row documents, by the rule of its own source."""
    if market.source != catalogue.source:
        raise ValueError(f"a market of {market.source} is not settled by the rule of {catalogue.source}")
    documented = catalogue.resolution(row)
    if isinstance(documented, Unresolved) or documented.winner is None:
        return documented if isinstance(documented, Unresolved) else CANCELLATION
    matched = match_outcomes(list(market.outcomes.all()), row.outcomes)
    return Resolution(next(outcome for outcome, quote in matched if quote is documented.winner))
