"""Positions, trades, settlements and the cash journal: the money, in exact decimals."""

from __future__ import annotations

from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal

from django.db import models
from django.db.models import Q

from agents.models.agent import Agent
from agents.models.decision import Decision
from foundation.change_times import ChangeTime, TimedQuerySet
from foundation.fields import MoneyField, PriceField, SharesField
from foundation.row_hashes import RowHashField
from markets.models import Market, Outcome

CENT = Decimal("0.01")
MICROSHARE = Decimal("0.000001")


def to_cents(amount: Decimal) -> Decimal:
    # The rounding mode is positional: as a keyword it costs as much as the rounding, and a page rounds thousands.
    return amount.quantize(CENT, ROUND_HALF_EVEN)


def to_microshares(shares: Decimal) -> Decimal:
    return shares.quantize(MICROSHARE, ROUND_HALF_EVEN)


def marked_value(shares: Decimal, cost_basis: Decimal, price: Decimal | None) -> Decimal:
    """The value of shares at a price, to the cent; at cost where there is no price, never zero."""
    return cost_basis if price is None else to_cents(shares * price)


def mean_price(cost_basis: Decimal, shares: Decimal) -> Decimal | None:
    """The mean price paid for the shares still held; None without shares."""
    return to_microshares(cost_basis / shares) if shares else None


class PositionQuerySet(TimedQuerySet["Position"]):
    def open(self) -> PositionQuerySet:
        return self.filter(status=Position.Status.OPEN)

    def held_at(self, at: datetime) -> PositionQuerySet:
        """Positions that were open at an instant."""
        return self.filter(opened_at__lte=at).filter(Q(closed_at=None) | Q(closed_at__gt=at))


class Position(ChangeTime):
    """An agent's shares of one side of a market. A bet after a full close opens a new position."""

    class Status(models.TextChoices):
        OPEN = "open"
        CLOSED = "closed", "sold"
        SETTLED = "settled"
        CANCELLED = "cancelled"

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="positions", db_index=False)
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="positions")
    outcome = models.ForeignKey(Outcome, on_delete=models.PROTECT, related_name="positions")
    status = models.CharField(max_length=10, choices=Status.choices, default=Status.OPEN)
    shares = SharesField(help_text="Shares held.")
    cost_basis = MoneyField(help_text="Cost basis of the shares held.")
    realized_pnl = MoneyField(default=Decimal("0.00"), help_text="Realized profit so far.")
    opened_at = models.DateTimeField(help_text="Time of the first purchase.")
    closed_at = models.DateTimeField(
        null=True, blank=True, help_text="Time of the sale of the last share, or of settlement."
    )

    objects = PositionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "outcome"],
                condition=Q(status="open"),
                name="one_open_position_per_agent_market_and_side",
            ),
            models.CheckConstraint(
                condition=Q(status="open", shares__gt=0, cost_basis__gte=0, closed_at__isnull=True)
                | (~Q(status="open") & Q(shares=0, cost_basis=0, closed_at__isnull=False)),
                name="only_an_open_position_holds_shares",
            ),
        ]
        indexes = [
            models.Index(fields=["status", "market"], name="position_by_status_and_market"),
            # Covering index for the valuation of portfolios.
            models.Index(fields=["agent", "status", "outcome", "shares"], name="position_valuation"),
            models.Index(fields=["cost_basis", "id"], name="position_by_cost_basis"),
            models.Index(fields=["realized_pnl", "id"], name="position_by_realized_pnl"),
            models.Index(fields=["opened_at", "id"], name="position_by_opening"),
            models.Index(fields=["closed_at", "id"], name="position_by_close"),
            models.Index(fields=["updated_at"], name="position_by_change"),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.agent}: {self.side} of {self.market}"

    @property
    def side(self) -> str:
        return self.outcome.side

    @property
    def entry_price(self) -> Decimal | None:
        return mean_price(self.cost_basis, self.shares)

    @property
    def price(self) -> Decimal | None:
        """The last accepted price of its side; None unless it is open."""
        return self.outcome.price if self.status == self.Status.OPEN else None

    @property
    def value(self) -> Decimal:
        return marked_value(self.shares, self.cost_basis, self.price)

    @property
    def unrealized_pnl(self) -> Decimal | None:
        return self.value - self.cost_basis if self.status == self.Status.OPEN else None


class Trade(models.Model):
    """A purchase or a sale, at the frozen price of its run."""

    class Kind(models.TextChoices):
        BUY = "BUY"
        SELL = "SELL"

    decision = models.ForeignKey(Decision, on_delete=models.PROTECT, related_name="trades")
    sequence = models.PositiveSmallIntegerField(help_text="Its place in the decision.")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="trades", db_index=False)
    position = models.ForeignKey(Position, on_delete=models.PROTECT, related_name="trades")
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="trades")
    outcome = models.ForeignKey(Outcome, on_delete=models.PROTECT, related_name="trades")
    kind = models.CharField(max_length=4, choices=Kind.choices)
    shares = SharesField(help_text="Number of shares.")
    price = PriceField(help_text="The side's price in the universe.")
    amount = MoneyField(help_text="Amount paid for a purchase or received for a sale.")
    cost_basis = MoneyField(help_text="Cost basis added by a purchase or given up by a sale.")
    realized_pnl = MoneyField(default=Decimal("0.00"), help_text="Proceeds less cost basis.")
    implied_confidence = models.FloatField(
        null=True, blank=True, help_text="The amount as a share of the largest legal bet, at most 1."
    )
    executed_at = models.DateTimeField(help_text="When the answer was recorded, at the prices of its universe.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["decision", "sequence"], name="one_trade_per_decision_and_sequence"),
            models.CheckConstraint(condition=Q(price__gt=0, price__lt=1), name="trade_price_inside_0_and_1"),
            models.CheckConstraint(
                condition=Q(shares__gt=0, amount__gte=0, cost_basis__gte=0), name="trade_amounts_positive"
            ),
            models.CheckConstraint(
                condition=Q(kind="BUY", implied_confidence__gte=0, implied_confidence__lte=1, realized_pnl=0)
                | Q(kind="SELL", implied_confidence__isnull=True),
                name="only_a_purchase_implies_a_confidence",
            ),
        ]
        indexes = [
            models.Index(fields=["agent", "executed_at"], name="trade_by_agent_and_time"),
            models.Index(fields=["executed_at", "id"], name="trade_by_time"),
            models.Index(fields=["amount", "id"], name="trade_by_amount"),
            # Covering index for the sums of stakes by side.
            models.Index(fields=["agent", "kind", "market", "outcome", "amount"], name="stake_by_agent"),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.kind} {self.shares} {self.outcome} at {self.price}"

    @property
    def side(self) -> str:
        return self.outcome.side


class Settlement(models.Model):
    """The payout of a position whose market was resolved or cancelled. Exactly one per position."""

    class Kind(models.TextChoices):
        WON = "won"
        LOST = "lost"
        REFUNDED = "refunded", "market cancelled"

    position = models.OneToOneField(Position, on_delete=models.PROTECT, related_name="settlement")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="settlements")
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="settlements")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    shares = SharesField(help_text="Settled shares.")
    cost_basis = MoneyField(help_text="Cost basis of the settled shares.")
    payout = MoneyField(help_text="Amount paid out.")
    realized_pnl = MoneyField(help_text="Payout less cost basis.")
    settled_at = models.DateTimeField(help_text="Time of settlement.")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(shares__gt=0, cost_basis__gte=0, payout__gte=0),
                name="settlement_amounts_not_negative",
            ),
            models.CheckConstraint(condition=~Q(kind="lost") | Q(payout=0), name="lost_position_pays_nothing"),
        ]
        indexes = [
            models.Index(fields=["settled_at", "id"], name="settlement_by_time"),
            models.Index(fields=["payout", "id"], name="settlement_by_payout"),
            models.Index(fields=["realized_pnl", "id"], name="settlement_by_realized_pnl"),
        ]
        ordering = ["-settled_at", "-pk"]

    def __str__(self) -> str:
        return f"{self.position}: {self.kind} {self.payout}"

    @property
    def standing_payout(self) -> Decimal:
        """The payout after all reversals."""
        last = max(self.position.reversals.all(), key=lambda reversal: reversal.sequence, default=None)
        return last.payout if last else self.payout


class JournalEntry(models.Model):
    """One change of an agent's cash, with the balance after it."""

    class Kind(models.TextChoices):
        DEPOSIT = "deposit", "starting balance"
        BUY = "buy"
        SELL = "sell"
        PAYOUT = "payout"
        REFUND = "refund"
        REVERSAL = "reversal", "corrected settlement"

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="journal")
    sequence = models.PositiveIntegerField(help_text="Its place in the agent's journal, from 1.")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    amount = MoneyField(help_text="Signed amount: positive for money in, negative for money out.")
    balance = MoneyField(help_text="Cash after the entry.")
    trade = models.OneToOneField(
        Trade,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="journal_entry",
        help_text="The trade, of a purchase or sale; null otherwise.",
    )
    settlement = models.OneToOneField(
        Settlement,
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="journal_entry",
        help_text="The settlement, of a payout or refund; null otherwise.",
    )
    occurred_at = models.DateTimeField(help_text="Time of the change.")

    class Meta:
        verbose_name_plural = "journal entries"
        constraints = [
            models.UniqueConstraint(fields=["agent", "sequence"], name="one_journal_entry_per_agent_and_sequence"),
            models.CheckConstraint(condition=Q(balance__gte=0), name="balance_not_negative"),
            models.CheckConstraint(
                condition=Q(kind="deposit", trade=None, settlement=None)
                | Q(kind__in=["buy", "sell"], trade__isnull=False, settlement=None)
                | Q(kind__in=["payout", "refund"], trade=None, settlement__isnull=False)
                | Q(kind="reversal", trade=None, settlement=None),
                name="journal_entry_names_its_cause",
            ),
        ]
        indexes = [
            models.Index(fields=["agent", "occurred_at"], name="journal_by_agent_and_time"),
            models.Index(fields=["occurred_at", "id"], name="journal_by_time"),
            models.Index(fields=["sequence", "id"], name="journal_by_sequence"),
        ]
        ordering = ["agent_id", "sequence"]

    def __str__(self) -> str:
        return f"{self.kind} {self.amount} -> {self.balance}"


class Reversal(models.Model):
    """The correction of a wrong settlement: the right kind and payout, and the journal entry of the difference.

    The settlement itself stays unchanged. A wrong reversal is corrected by a further one.
    """

    position = models.ForeignKey(Position, on_delete=models.PROTECT, related_name="reversals")
    sequence = models.PositiveSmallIntegerField(help_text="Its place among the position's reversals.")
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="reversals")
    market = models.ForeignKey(Market, on_delete=models.PROTECT, related_name="reversals")
    kind = models.CharField(
        max_length=10, choices=Settlement.Kind.choices, help_text="won, lost or refunded: the corrected result."
    )
    previous_payout = MoneyField(help_text="The payout that was taken back.")
    payout = MoneyField(help_text="The corrected payout.")
    entry = models.OneToOneField(JournalEntry, on_delete=models.PROTECT, related_name="reversal")
    reason = models.TextField(help_text="The reason.")
    reversed_by = models.CharField(max_length=150)
    reversed_at = models.DateTimeField(help_text="Time of the correction.")
    row_sha256 = RowHashField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["position", "sequence"], name="one_reversal_per_position_and_sequence"),
            models.CheckConstraint(
                condition=Q(previous_payout__gte=0, payout__gte=0) & (~Q(kind="lost") | Q(payout=0)),
                name="reversal_amounts_not_negative",
            ),
            models.CheckConstraint(condition=~Q(reason=""), name="reversal_has_a_reason"),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.position}: {self.kind} {self.payout} instead of {self.previous_payout}"
