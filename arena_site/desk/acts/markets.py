"""The end of a market, said by a person: what no documented signal has said."""

from datetime import datetime
from typing import Any

from django import forms
from django.db.models import Sum

from agents.models import Position
from agents.models.ledger import to_cents
from agents.services.settlement import Cancelled, Won, cohorts_complete, market_settle
from arena_site.desk.act import Act, Asked, Done, Preview, RowField, nothing, row_path, unchanged
from markets.models import Market
from markets.services.endings import questions_resolve
from scoring.services.scores import compute_scores

CANCELLED = "cancelled"


class EndForm(forms.Form):
    """A market, its end and where that can be read."""

    market = RowField(Market.objects.prefetch_related("outcomes"), "market")
    end = forms.ChoiceField(choices=[], label="What happened", widget=forms.RadioSelect)
    source = forms.CharField(
        max_length=500, label="Source", help_text="Where that can be read: an address, or who said it where and when."
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        end, market = self.fields["end"], self._market()
        assert isinstance(end, forms.ChoiceField)
        sides = [(f"outcome-{o.pk}", f"{o.side} won") for o in market.outcomes.all()] if market else []
        end.choices = [*sides, (CANCELLED, "Cancelled: nobody won, every cost basis goes back")]
        self.fields["market"].help_text = market.question if market else "Its page in the admin leads here."

    def _market(self) -> Market | None:
        number = str(self.data.get("market") or self.initial.get("market") or "")
        return Market.objects.filter(pk=number).first() if number.isdecimal() and len(number) < 19 else None

    def clean(self) -> dict[str, Any]:
        asked: dict[str, Any] = super().clean() or self.cleaned_data
        market, end = asked.get("market"), asked.get("end")
        if market is not None and end:
            asked["outcome"] = next((o for o in market.outcomes.all() if f"outcome-{o.pk}" == end), None)
        return asked


def end_of(asked: Asked) -> Won | Cancelled:
    return Won(asked["outcome"]) if asked["outcome"] else Cancelled()


def said(end: Won | Cancelled) -> str:
    return f"{end.outcome.side} won" if isinstance(end, Won) else "cancelled"


def market_state(market: Market) -> dict[str, Any]:
    market = Market.objects.select_related("winning_outcome").get(pk=market.pk)
    held = Position.objects.filter(market=market)
    return {
        "status": market.status,
        "winner": market.winning_side,
        "resolved at": market.resolved_at,
        "open positions": held.filter(status=Position.Status.OPEN).count(),
        "realized P/L": held.aggregate(sum=Sum("realized_pnl"))["sum"],
    }


class Settle(Act):
    name, title, confirm = "settle", "Settle a market by hand", "Yes, settle it so"
    about = "A closed market without a documented end: its outcome, or cancelled."
    permission = "arena_site.settle_markets"
    reason_is_for = "For the audit log, and beside the source on the market's public page."
    form = EndForm

    def target(self, asked: Asked) -> str:
        return str(asked["market"])

    def target_path(self, asked: Asked) -> str:
        return row_path(asked["market"])

    def state(self, asked: Asked) -> dict[str, Any]:
        return market_state(asked["market"])

    def obstacle(self, market: Market) -> str:
        if market.is_final:
            return f"It is {market.status}{f', {market.winning_side} won' if market.winning_side else ''} already."
        if market.status != Market.Status.CLOSED:
            return "It is still open at its venue: only a closed market can be settled by hand."
        return ""

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        market: Market = asked["market"]
        if why := self.obstacle(market):
            return nothing(why)
        end = end_of(asked)
        held = list(Position.objects.open().filter(market=market).select_related("agent__cohort", "outcome"))
        says = f"“{market}” ends: {said(end)}. {len(held)} open positions are paid, once and for ever."
        return Preview(says, [_payment(position, end) for position in held])

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        market: Market = asked["market"]
        market.refresh_from_db()
        path = row_path(market)
        if why := self.obstacle(market):
            return unchanged(f"Nothing was settled. {why}", path)
        end = end_of(asked)
        settled = market_settle(market, end, at=at)
        if settled is None:
            return unchanged("Nothing was settled: it has come to its end meanwhile.", path)
        questions_resolve(at=at)
        cohorts_complete(at=at)
        return Done(f"Settled: {said(end)}; {settled} positions paid.", path=path)

    def follow_up(self, asked: Asked, done: Done, *, at: datetime) -> None:
        if done.changed:
            compute_scores(at=at, afresh=False, forecast_boards=False)


def _payment(position: Position, end: Won | Cancelled) -> str:
    if isinstance(end, Cancelled):
        paid = position.cost_basis
    else:
        paid = to_cents(position.shares) if position.outcome_id == end.outcome.pk else to_cents(position.shares * 0)
    return f"{position.agent}: {position.shares} {position.side}, cost {position.cost_basis}, is paid {paid}"
