"""Snapshots: cash by the journal, values by the positions and prices of their instant, records by bet scores.

Rows of the very instant of a snapshot may have come before or after it. So cash and value have to be those of one
moment of that instant, and the prices the last or the first ones of it, or the last ones before.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from statistics import fmean

from agents.models.ledger import marked_value
from scoring.exports.verification.archive_reader import Archive, Row, mismatches
from scoring.stored_json import is_same
from scoring.valuations import ZERO, Valuation


@dataclass(slots=True)
class _Holding:
    """The shares of a position, and their cost basis, after a journal entry."""

    outcome: int
    shares: Decimal = ZERO
    cost_basis: Decimal = ZERO


@dataclass(slots=True)
class _Moment:
    """An account after a journal entry."""

    at: str
    cash: Decimal
    holdings: dict[int, _Holding]


class _PriceHistory:
    """The recorded prices of each outcome, in the order in which they were recorded."""

    def __init__(self, archive: Archive, outcomes: set[int]) -> None:
        self._times: dict[int, list[str]] = defaultdict(list)
        self._prices: dict[int, list[tuple[Decimal | None, bool]]] = defaultdict(list)
        for row in archive.rows("prices"):
            if row["outcome"] in outcomes:
                self._times[row["outcome"]].append(row["observed_at"])
                self._prices[row["outcome"]].append((row["price"], row["stale"]))

    def at(self, outcome: int, at: str) -> list[tuple[Decimal | None, bool]]:
        """The prices that may have counted at an instant: the last one by then, the first one then, the last before."""
        times, prices = self._times[outcome], self._prices[outcome]
        before, by_then = bisect_left(times, at), bisect_right(times, at)
        places = [by_then - 1, min(before, by_then - 1), before - 1]
        return [prices[place] if place >= 0 else (None, True) for place in places]


@dataclass(slots=True)
class _Account:
    """An agent's moments in order, and its bet scores."""

    moments: list[_Moment] = field(default_factory=list)
    scores: list[Row] = field(default_factory=list)


def check_snapshots(archive: Archive) -> Iterator[str]:
    """Every figure of each snapshot follows from the journal, trades, settlements, prices and bet scores."""
    opening = {pk: Decimal(archive.rules_of(pk)["starting_balance"]) for pk in archive.agents}
    if archive.is_window:
        for snapshot in archive.rows("snapshots"):
            yield from mismatches(_name(snapshot), snapshot, _sums(snapshot, opening[snapshot["agent"]]))
        return
    accounts = _accounts(archive)
    prices = _PriceHistory(archive, {position["outcome"] for position in archive.rows("positions")})
    reversed_markets = {row["market"] for row in archive.rows("reversals")}
    for snapshot in archive.rows("snapshots"):
        name, account = _name(snapshot), accounts[snapshot["agent"]]
        yield from mismatches(name, snapshot, _sums(snapshot, opening[snapshot["agent"]]))
        moments = _moments(account, snapshot["taken_at"])
        candidates = [_valued(moment, prices, snapshot["taken_at"], way) for moment in moments for way in range(3)]
        if not any(_agrees(snapshot, candidate) for candidate in candidates):
            yield from mismatches(name, snapshot, candidates[-3])
        if not any(score["market"] in reversed_markets for score in account.scores):
            yield from _check_record(name, snapshot, account.scores)


def _name(snapshot: Row) -> str:
    return f"snapshots: agent {snapshot['agent']} at {snapshot['taken_at']}"


def _sums(snapshot: Row, opening: Decimal) -> Row:
    worth = Valuation(snapshot["cash"], snapshot["positions_value"], opening)
    return {"total_value": worth.total, "pnl": worth.pnl, "pnl_percent": worth.pnl_percent}


def _accounts(archive: Archive) -> Mapping[int, _Account]:
    settlements = archive.by_id("settlements")
    accounts: dict[int, _Account] = defaultdict(_Account)
    held: dict[int, dict[int, _Holding]] = defaultdict(dict)
    for entry in archive.rows("journal"):
        agent = entry["agent"]
        if entry["trade"] is not None:
            held[agent] = _after_trade(held[agent], archive.trades[entry["trade"]])
        elif entry["settlement"] is not None:
            settled = settlements[entry["settlement"]]["position"]
            held[agent] = {pk: holding for pk, holding in held[agent].items() if pk != settled}
        accounts[agent].moments.append(_Moment(entry["occurred_at"], entry["balance"], held[agent]))
    for score in archive.rows("brier_scores"):
        accounts[score["agent"]].scores.append(score)
    return accounts


def _after_trade(held: dict[int, _Holding], trade: Row) -> dict[int, _Holding]:
    before, sign = held.get(trade["position"], _Holding(trade["outcome"])), 1 if trade["kind"] == "BUY" else -1
    shares, cost = before.shares + sign * trade["shares"], before.cost_basis + sign * trade["cost_basis"]
    held = held | {trade["position"]: _Holding(trade["outcome"], shares, cost)}
    if not shares:
        del held[trade["position"]]
    return held


def _moments(account: _Account, at: str) -> list[_Moment]:
    """The account's last moment before an instant, and those of the instant, the last one at the end."""
    times = [moment.at for moment in account.moments]
    first, end = bisect_left(times, at), bisect_right(times, at)
    return account.moments[max(first - 1, 0) : end] or [_Moment(at, ZERO, {})]


def _valued(moment: _Moment, prices: _PriceHistory, at: str, way: int) -> Row:
    marks = [(holding, *prices.at(holding.outcome, at)[way]) for holding in moment.holdings.values()]
    return {
        "cash": moment.cash,
        "positions_value": sum((marked_value(h.shares, h.cost_basis, price) for h, price, _ in marks), ZERO),
        "open_positions": len(marks),
        "stale_positions": sum(stale for _, _, stale in marks),
    }


def _agrees(stated: Row, computed: Row) -> bool:
    return all(is_same(stated[name], value) for name, value in computed.items())


def _check_record(name: str, snapshot: Row, scores: list[Row]) -> Iterator[str]:
    """The record is of the bets that were resolved, or scored, by the snapshot, or resolved before it."""
    at = snapshot["taken_at"]
    ways = (
        [score for score in scores if score["resolved_at"] <= at],
        [score for score in scores if score["scored_at"] <= at],
        [score for score in scores if score["resolved_at"] < at],
    )
    candidates = [
        {"resolved_bets": len(own), "brier": fmean(score["score"] for score in own) if own else None} for own in ways
    ]
    if not any(_agrees(snapshot, candidate) for candidate in candidates):
        yield from mismatches(name, snapshot, candidates[0])
