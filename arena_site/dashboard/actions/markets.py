"""Manual settlement of a market whose venue gives no documented resolution, and reversal of a wrong settlement."""

from datetime import datetime
from typing import Any

from django import forms
from django.db.models import Q, QuerySet, Sum

from agents.models import Position
from agents.services.envelopes import SEALED_MARKET, AnswerWaits, open_envelopes, waiting_ids
from agents.services.ledger import settlement_payout
from agents.services.manual_settlements import reverse_manually, settle_manually
from agents.services.resolutions import Resolution
from agents.services.reversals import InsufficientCash, reversal_changes
from agents.services.settlement import complete_cohorts
from arena_site.dashboard.action import (
    Action,
    ActionResult,
    ChoiceForm,
    FormData,
    Preview,
    RowChoiceField,
    RowIdsField,
)
from markets.models import Market
from markets.services.question_resolution import correct_question_outcomes, resolve_questions

CANCELLED = "cancelled"
FINAL = (Market.Status.RESOLVED, Market.Status.CANCELLED)


def unsettled_markets(rows: QuerySet[Market]) -> QuerySet[Market]:
    """Markets with positions that are closed or can not be read, the longest closed first."""
    waiting = Q(status=Market.Status.CLOSED) | Q(status=Market.Status.ACTIVE, unreadable_since__isnull=False)
    market_ids = Position.objects.open().values("market")
    return rows.filter(waiting, pk__in=market_ids).order_by("closed_at", "pk")


def settled_markets(rows: QuerySet[Market]) -> QuerySet[Market]:
    """Final markets that agents had positions in or that questions ask about, the newest first."""
    settled = Q(pk__in=Position.objects.values("market")) | Q(has_questions=True)
    return rows.filter(settled, status__in=FINAL).order_by("-resolved_at", "-pk")


class OutcomeForm(ChoiceForm):
    """A market, and once it is chosen its outcome and the source for it."""

    market = RowChoiceField(Market.objects.prefetch_related("outcomes"), "market", unsettled_markets)
    result = forms.ChoiceField(choices=[], label="Outcome", widget=forms.RadioSelect)
    source = forms.CharField(
        max_length=500, label="Source", help_text="An address, or who announced it, where and when."
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field, market = self.fields["result"], self._market()
        assert isinstance(field, forms.ChoiceField)
        choices = []
        for outcome in market.outcomes.all() if market else ():
            choices.append((f"outcome-{outcome.pk}", f"{outcome.side} won"))
        field.choices = [*choices, (CANCELLED, "Cancelled: no winner, every cost basis is refunded")]
        self.fields["market"].help_text = market.question if market else "Its outcomes are asked for next."
        if market is None:
            del self.fields["result"], self.fields["source"]

    def _market(self) -> Market | None:
        number = str(self.data.get("market") or self.initial.get("market") or "")
        return Market.objects.filter(pk=number).first() if RowIdsField.is_id(number) else None

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        market, result = data.get("market"), data.get("result")
        if market is not None and result:
            data["outcome"] = next(
                (outcome for outcome in market.outcomes.all() if f"outcome-{outcome.pk}" == result), None
            )
        return data


class ReversalForm(OutcomeForm):
    market = RowChoiceField(Market.objects.prefetch_related("outcomes"), "market", settled_markets)


def chosen_resolution(data: FormData) -> Resolution:
    return Resolution(winner=data["outcome"])


def market_state(market: Market) -> dict[str, Any]:
    market = Market.objects.select_related("winning_outcome").get(pk=market.pk)
    positions = Position.objects.filter(market=market)
    return {
        "status": market.status,
        "winner": market.winning_side,
        "resolved at": market.resolved_at,
        "open positions": positions.filter(status=Position.Status.OPEN).count(),
        "realized P/L": positions.aggregate(sum=Sum("realized_pnl"))["sum"],
    }


class SettleMarket(Action):
    name, title, confirm_label = "settle", "Settle a market manually", "Yes, settle it"
    description = "Resolves or cancels a closed market that its venue leaves unresolved."
    permission = "arena_site.settle_markets"
    reason_help = "For the audit log and, with the source, for the market's public page."
    form, row_field = OutcomeForm, "market"

    def prepare(self, *, at: datetime) -> None:
        open_envelopes(at=at)

    def state(self, data: FormData) -> dict[str, Any]:
        return market_state(data["market"])

    def obstacle(self, data: FormData, at: datetime) -> str:
        market: Market = data["market"]
        market.refresh_from_db()
        if market.is_final:
            return f"It is {market.status}{f', {market.winning_side} won' if market.winning_side else ''} already."
        if market.status != Market.Status.CLOSED and market.unreadable_since is None:
            return "It is still open at its venue: only a closed market, or an unreadable one, is settled manually."
        return SEALED_MARKET if waiting_ids([market], beyond=at) else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        market, resolution = data["market"], chosen_resolution(data)
        positions = list(Position.objects.open().filter(market=market).select_related("agent__cohort", "outcome"))
        summary = f"“{market}”: {resolution}. {len(positions)} open positions are paid, which can not be undone."
        return Preview(summary, [_payment(position, resolution) for position in positions])

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        resolution = chosen_resolution(data)
        try:
            settled = settle_manually(data["market"], resolution, source=data["source"], reason=reason, by=by, at=at)
        except AnswerWaits as error:
            return ActionResult(f"Nothing was changed. {error}", changed=False)
        if settled is None:
            return None
        resolve_questions(at=at)
        complete_cohorts(at=at)
        return ActionResult(f"Settled: {resolution}; {settled.positions} positions paid.")

    def after_commit(self, data: FormData, result: ActionResult, *, at: datetime) -> None:
        from scoring.services.scores import compute_scores  # loads the scoring library

        if result.changed:
            compute_scores(at=at, refit=False, forecast_leaderboards=False)


class ReverseSettlement(SettleMarket):
    """Reversal by compensating journal entries; nothing is edited."""

    name, title, confirm_label = "reverse", "Reverse a wrong settlement", "Yes, reverse it"
    form = ReversalForm
    description = "Gives a final market another outcome: compensating entries for every position, and new scores."

    def obstacle(self, data: FormData, at: datetime) -> str:
        market, outcome = data["market"], data["outcome"]
        market.refresh_from_db()
        if not market.is_final:
            return f"It is {market.status}: there is no settlement to reverse."
        is_current = market.winning_outcome_id == outcome.pk if outcome else market.status == Market.Status.CANCELLED
        if is_current:
            return f"That is its outcome already: {chosen_resolution(data)}."
        return SEALED_MARKET if waiting_ids([market], beyond=at) else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        market, resolution = data["market"], chosen_resolution(data)
        try:
            changes = reversal_changes(market, resolution)
        except InsufficientCash as error:
            return Preview(f"It can not be reversed, since cash may not fall below zero: {error}.", possible=False)
        lines = []
        for change in changes:
            payouts = f"{change.payout} for the {change.previous_payout} that was paid"
            lines.append(f"{change.settlement.agent}: {change.kind} instead, {payouts}: {change.amount:+}")
        was = f"{market.winning_side} won" if market.winning_side else market.status
        summary = f"“{market}” was settled as {was}; it becomes: {resolution}. {len(lines)} positions are corrected."
        warning = "Its bets and forecasts are scored again; past snapshots stay as they are."
        return Preview(summary, lines, warning)

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        from scoring.services.scores import clear_scores  # loads the scoring library

        market, resolution = data["market"], chosen_resolution(data)
        try:
            corrected = reverse_manually(market, resolution, source=data["source"], reason=reason, by=by, at=at)
        except AnswerWaits as error:
            return ActionResult(f"Nothing was changed. {error}", changed=False)
        except InsufficientCash as error:
            return ActionResult(f"Nothing was reversed, since cash may not fall below zero: {error}.", changed=False)
        if corrected is None:
            return None
        market.refresh_from_db()
        clear_scores(market, correct_question_outcomes(market, at=at))
        complete_cohorts(at=at)
        return ActionResult(f"Reversed: {resolution}; {corrected.positions} positions corrected.")


def _payment(position: Position, resolution: Resolution) -> str:
    kind = resolution.settlement_kind(position.outcome_id)
    paid = settlement_payout(kind, position.shares, position.cost_basis)
    return f"{position.agent}: {position.shares} {position.side}, cost {position.cost_basis}, is paid {paid}"
