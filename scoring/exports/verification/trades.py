"""Trades: prices, and the figures that follow from them by the rules."""

from collections.abc import Iterator
from decimal import Decimal

from agents.models.ledger import to_cents, to_microshares
from scoring.exports.verification.archive_reader import Archive, Row, mismatches

ZERO = Decimal("0.00")


def check_trades(archive: Archive) -> Iterator[str]:
    """Each trade has its universe's price, from which its shares, amounts and confidence follow."""
    prices = {(row["universe"], row["market"]): row["prices"] for row in archive.rows("universe_entries")}
    cash_before = {
        row["trade"]: row["balance"] - row["amount"] for row in archive.rows("journal") if row["trade"] is not None
    }
    for pk, trade in archive.trades.items():
        row = f"trades: trade {pk}"
        universe = archive.decisions[trade["decision"]]["universe"]
        frozen = prices.get((universe, trade["market"]), {}).get(trade["side"])
        if frozen is None or Decimal(frozen) != trade["price"]:
            yield f"{row} is at {trade['price']:f}, its universe's price is {frozen}"
        if trade["side"] != archive.outcomes[trade["outcome"]]["side"]:
            yield f"{row} names side {trade['side']}, its outcome is {archive.outcomes[trade['outcome']]['side']}"
        yield from mismatches(row, trade, _computed(archive, trade, cash_before.get(pk)))


def _computed(archive: Archive, trade: Row, cash: Decimal | None) -> Row:
    """The figures that follow from a trade's price, and from its amount (purchases) or shares (sales)."""
    if trade["kind"] == "SELL":
        amount = to_cents(trade["shares"] * trade["price"])
        return {"amount": amount, "realized_pnl": amount - trade["cost_basis"], "implied_confidence": None}
    computed = {
        "shares": to_microshares(trade["amount"] / trade["price"]),
        "cost_basis": trade["amount"],
        "realized_pnl": ZERO,
    }
    if cash:
        largest = cash * Decimal(archive.rules_of(trade["agent"])["maximum_bet_fraction"])
        computed["implied_confidence"] = min(float(trade["amount"] / largest), 1.0)
    return computed
