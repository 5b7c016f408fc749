"""Agents and snapshots: cash by the journal, values by positions and prices, records by the scores of bets.

Rows of the very instant of a snapshot may have come before or after it. So cash and value have to be those of one
moment of that instant, and the prices the last or the first ones of it, or the last ones before.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from decimal import Decimal
from statistics import fmean
from typing import Any

from arena_verifier.rows import ZERO, Row, Tables, Violations, cents, same

PERCENT = Decimal("0.0001")


def check_agents(tables: Tables, violations: Violations) -> None:
    """Values of agents follow from cash, positions and last prices, their records from the scores of bets."""
    value: dict[int, Decimal] = defaultdict(lambda: ZERO)
    for position in tables.by("positions").values():
        if position["status"] == "open":
            value[position["agent"]] += mark(position, tables.by("outcomes")[position["outcome"]]["price"])
    scores, releases = tables.grouped("brier_scores", "agent"), tables.by("releases")
    for pk, agent in tables.by("agents").items():
        opening, release = Decimal(tables.rules_of(pk)["starting_balance"]), releases.get(agent["release"], {})
        total, bets = agent["cash"] + value[pk], scores.get(pk, [])
        figures = {
            "family": release.get("family"), "model_id": release.get("model_id"),
            "starting_balance": opening, "positions_value": value[pk], "total_value": total,
            "pnl": total - opening, "return_percent": float((total - opening) / opening * 100),
            "win_rate": fmean(bet["outcome"] for bet in bets) if bets else None, **record_of(bets),
        }  # fmt: skip
        violations.differ("agents", agent, figures)


def record_of(bets: list[Row]) -> Row:
    """The number of resolved bets and their mean score."""
    return {"resolved_bets": len(bets), "brier": fmean(bet["score"] for bet in bets) if bets else None}


def mark(holding: Row, price: Decimal | None) -> Decimal:
    """The value of shares at a price, to the cent; at cost where there is none."""
    cost: Decimal = holding["cost_basis"]
    return cost if price is None else cents(holding["shares"] * price)


def check_snapshots(tables: Tables, violations: Violations) -> None:
    """Every figure of each snapshot follows from the journal, trades, settlements, prices and scores of bets."""
    if tables.is_window:
        for snapshot in tables.rows("snapshots"):
            violations.differ("snapshots", snapshot, snapshot_sums(tables, snapshot))
        return
    accounts, prices = account_moments(tables), PriceHistory(tables)
    scores = tables.grouped("brier_scores", "agent")
    reversed_markets = {row["market"] for row in tables.rows("reversals")}
    for snapshot in tables.rows("snapshots"):
        violations.differ("snapshots", snapshot, snapshot_sums(tables, snapshot))
        at, agent = snapshot["taken_at"], snapshot["agent"]
        times, moments = accounts.get(agent, ([], []))
        possible = moments[max(bisect_left(times, at) - 1, 0) : bisect_right(times, at)] or [(ZERO, {})]
        check_valuation(snapshot, possible, prices, violations)
        if not any(score["market"] in reversed_markets for score in scores.get(agent, [])):
            check_snapshot_record(snapshot, scores.get(agent, []), violations)


def check_valuation(snapshot: Row, moments: list[Any], prices: "PriceHistory", violations: Violations) -> None:
    """Cash and value are those of one of these moments of the account, at prices of the instant or before it."""
    for moment in moments:
        for way in range(3):
            if agrees(snapshot, valuation(moment, prices, snapshot["taken_at"], way)):
                return
    violations.differ("snapshots", snapshot, valuation(moments[-1], prices, snapshot["taken_at"], 0))


def snapshot_sums(tables: Tables, snapshot: Row) -> Row:
    openings = tables.cache.setdefault("openings", {})
    agent = snapshot["agent"]
    if agent not in openings:
        openings[agent] = Decimal(tables.rules_of(agent)["starting_balance"])
    total = snapshot["cash"] + snapshot["positions_value"]
    pnl = total - openings[agent]
    percent = (pnl / openings[agent] * 100).quantize(PERCENT)
    return {"total_value": total, "pnl": pnl, "pnl_percent": percent}


def account_moments(tables: Tables) -> dict[int, tuple[list[str], list[Any]]]:
    """By agent, the times of its journal entries, and its cash and holdings after each of them."""
    settlements, trades = tables.by("settlements"), tables.by("trades")
    accounts: dict[int, tuple[list[str], list[Any]]] = defaultdict(lambda: ([], []))
    positions: dict[int, dict[int, Row]] = defaultdict(dict)
    for entry in tables.rows("journal"):
        holdings = dict(positions[entry["agent"]])
        if entry["trade"] is not None:
            trade = trades[entry["trade"]]
            sign = 1 if trade["kind"] == "BUY" else -1
            before = holdings.get(trade["position"], {"shares": ZERO, "cost_basis": ZERO})
            after = {name: before[name] + sign * trade[name] for name in ("shares", "cost_basis")}
            holdings[trade["position"]] = after | {"outcome": trade["outcome"]}
            if not after["shares"]:
                del holdings[trade["position"]]
        elif entry["settlement"] is not None:
            holdings.pop(settlements[entry["settlement"]]["position"], None)
        positions[entry["agent"]] = holdings
        times, moments = accounts[entry["agent"]]
        times.append(entry["occurred_at"])
        moments.append((entry["balance"], holdings))
    return accounts


class PriceHistory:
    """The recorded prices of each outcome that was held, in the order in which they were recorded."""

    def __init__(self, tables: Tables) -> None:
        outcomes = {row["outcome"] for row in tables.rows("positions")}
        self.times: dict[int, list[str]] = defaultdict(list)
        self.prices: dict[int, list[tuple[Decimal | None, bool]]] = defaultdict(list)
        for row in tables.rows("prices"):
            if row["outcome"] in outcomes:
                self.times[row["outcome"]].append(row["observed_at"])
                self.prices[row["outcome"]].append((row["price"], row["stale"]))

    def at(self, outcome: int, at: str, way: int) -> tuple[Decimal | None, bool]:
        """The last price by an instant, the first one of it, or the last one before it; and whether it was stale."""
        times = self.times[outcome]
        before, by_then = bisect_left(times, at), bisect_right(times, at)
        place = (by_then - 1, min(before, by_then - 1), before - 1)[way]
        return self.prices[outcome][place] if place >= 0 else (None, True)


def valuation(moment: tuple[Decimal, dict[int, Row]], prices: PriceHistory, at: str, way: int) -> Row:
    cash, holdings = moment
    total, old = ZERO, 0
    for holding in holdings.values():
        price, stale = prices.at(holding["outcome"], at, way)
        total, old = total + mark(holding, price), old + stale
    return {"cash": cash, "positions_value": total, "open_positions": len(holdings), "stale_positions": old}


def agrees(row: Row, figures: Row) -> bool:
    return all(same(row[name], value) for name, value in figures.items())


def check_snapshot_record(snapshot: Row, scores: list[Row], violations: Violations) -> None:
    """The record is of the bets that were resolved, or scored, by the snapshot, or resolved before it."""
    at = snapshot["taken_at"]
    resolved, scored, before = [], [], []
    for score in scores:
        if score["resolved_at"] <= at:
            resolved.append(score)
        if score["scored_at"] <= at:
            scored.append(score)
        if score["resolved_at"] < at:
            before.append(score)
    for bets in (resolved, scored, before):
        if agrees(snapshot, record_of(bets)):
            return
    violations.differ("snapshots", snapshot, record_of(resolved))
