"""Reversing a settlement that proved wrong: compensating rows, never an edit."""

from datetime import datetime
from typing import Any

from agents.services.reversals import Overdrawn, reversal_changes, settlement_reverse
from agents.services.settlement import cohorts_complete
from arena_site.desk.act import Asked, Done, Preview, nothing, row_path, unchanged
from arena_site.desk.acts.markets import Settle, end_of, said
from markets.models import Market
from markets.services.endings import questions_reconsider
from scoring.services.scores import compute_scores, scores_forget


class Reverse(Settle):
    name, title, confirm = "reverse", "Reverse a wrong settlement", "Yes, reverse it"
    about = "Another end for a final market: compensating entries for every position, and scores anew."

    def obstacle(self, market: Market) -> str:
        if not market.is_final:
            return f"It is {market.status}: there is no settlement to reverse."
        return ""

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        market: Market = asked["market"]
        if why := self.obstacle(market):
            return nothing(why)
        end = end_of(asked)
        if _has(market, asked):
            return nothing(f"That is its end already: {said(end)}.")
        try:
            changes = reversal_changes(market, end)
        except Overdrawn as error:
            return nothing(f"It can not be reversed, as cash never falls below zero: {error}.")
        lines = [
            f"{c.settlement.agent}: {c.kind} instead, {c.payout} for the {c.taken_back} that was paid: {c.amount:+}"
            for c in changes
        ]
        was = f"{market.winning_side} won" if market.winning_side else market.status
        says = f"“{market}” was settled as {was}; it becomes: {said(end)}. {len(lines)} positions are made good."
        warning = "Bets and forecasts on it are scored anew; snapshots of the past stay as they were."
        return Preview(says, lines, warning)

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        market: Market = asked["market"]
        market.refresh_from_db()
        path = row_path(market)
        if why := self.obstacle(market):
            return unchanged(f"Nothing was reversed. {why}", path)
        end = end_of(asked)
        told = f"{reason} (source: {asked['source']})"
        try:
            made_good = settlement_reverse(market, end, by=by, reason=told, at=at)
        except Overdrawn as error:
            return unchanged(f"Nothing was reversed, as cash never falls below zero: {error}.", path)
        if made_good is None:
            return unchanged("Nothing was reversed: that is its end already.", path)
        market.refresh_from_db()
        scores_forget(market, questions_reconsider(market, at=at))
        cohorts_complete(at=at)
        return Done(f"Reversed: {said(end)}; {made_good} positions made good.", path=path)

    def follow_up(self, asked: Asked, done: Done, *, at: datetime) -> None:
        if done.changed:
            compute_scores(at=at, afresh=False, forecast_boards=False)


def _has(market: Market, asked: Asked) -> bool:
    outcome: Any = asked["outcome"]
    return market.winning_outcome_id == outcome.pk if outcome else market.status == Market.Status.CANCELLED
