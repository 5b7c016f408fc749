"""Reversal of a wrong settlement by compensating journal entries; nothing is edited."""

from datetime import datetime
from typing import Any

from agents.services.reversals import InsufficientCash, reversal_changes, reverse_settlement
from agents.services.settlement import complete_cohorts
from arena_site.dashboard.action import ActionResult, FormData, Preview, no_change, not_possible, row_path
from arena_site.dashboard.actions.markets import SettleMarket, chosen_resolution
from markets.models import Market
from markets.services.question_resolution import correct_question_outcomes


class ReverseSettlement(SettleMarket):
    name, title, confirm_label = "reverse", "Reverse a wrong settlement", "Yes, reverse it"
    description = "Gives a final market another outcome: compensating entries for every position, and new scores."

    def obstacle(self, market: Market) -> str:
        if not market.is_final:
            return f"It is {market.status}: there is no settlement to reverse."
        return ""

    def preview(self, data: FormData, *, at: datetime) -> Preview:
        market: Market = data["market"]
        if why := self.obstacle(market):
            return not_possible(why)
        resolution = chosen_resolution(data)
        if _is_current(market, data):
            return not_possible(f"That is its outcome already: {resolution}.")
        try:
            changes = reversal_changes(market, resolution)
        except InsufficientCash as error:
            return not_possible(f"It can not be reversed, since cash may not fall below zero: {error}.")
        lines = [
            f"{c.settlement.agent}: {c.kind} instead, {c.payout} for the {c.previous_payout} that was paid: "
            f"{c.amount:+}"
            for c in changes
        ]
        was = f"{market.winning_side} won" if market.winning_side else market.status
        summary = f"“{market}” was settled as {was}; it becomes: {resolution}. {len(lines)} positions are corrected."
        warning = "Its bets and forecasts are scored again; past snapshots stay as they are."
        return Preview(summary, lines, warning)

    def perform(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        from scoring.services.scores import clear_scores  # loads the scoring library

        market: Market = data["market"]
        market.refresh_from_db()
        path = row_path(market)
        if why := self.obstacle(market):
            return no_change(f"Nothing was reversed. {why}", path)
        resolution = chosen_resolution(data)
        sourced = f"{reason} (source: {data['source']})"
        try:
            corrected = reverse_settlement(market, resolution, by=by, reason=sourced, at=at)
        except InsufficientCash as error:
            return no_change(f"Nothing was reversed, since cash may not fall below zero: {error}.", path)
        if corrected is None:
            return no_change("Nothing was reversed: that is its outcome already.", path)
        market.refresh_from_db()
        clear_scores(market, correct_question_outcomes(market, at=at))
        complete_cohorts(at=at)
        return ActionResult(f"Reversed: {resolution}; {corrected} positions corrected.", path=path)


def _is_current(market: Market, data: FormData) -> bool:
    outcome: Any = data["outcome"]
    return market.winning_outcome_id == outcome.pk if outcome else market.status == Market.Status.CANCELLED
