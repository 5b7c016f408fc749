"""The ledger: trades, journals, positions, settlements and their reversals."""

from collections import Counter, defaultdict
from decimal import ROUND_HALF_EVEN, Decimal

from arena_verifier.instructions import InstructionRejected, check_amount
from arena_verifier.rows import CENT, MICROSHARE, ZERO, Row, Tables, Violations, cents


def check_trades(tables: Tables, violations: Violations) -> None:
    """Each trade has its universe's price, from which its figures follow, and its decision's agent and time."""
    prices = {(row["universe"], row["market"]): row["prices"] for row in tables.rows("universe_entries")}
    for trade in tables.by("trades").values():
        universe = tables.by("decisions")[trade["decision"]]["universe"]
        price = prices.get((universe, trade["market"]), {}).get(trade["side"])
        if price is None or Decimal(price) != trade["price"]:
            violations.note("trades", trade, f"is at {trade['price']:f}, its universe's price is {price}")
    check_trade_figures(tables, violations)


def check_trade_figures(tables: Tables, violations: Violations) -> None:
    """The figures of each trade follow from its price, its agent from its decision, and its time from the opening.

    Each bet keeps to the limits of its methodology. An answer that was never under seal traded at once.
    """
    cash_before = {}
    for row in tables.rows("journal"):
        if row["trade"] is not None:
            cash_before[row["trade"]] = row["balance"] - row["amount"]
    opened = {row["decision"]: row["opened_at"] for row in tables.rows("envelopes") if row["state"] == "opened"}
    for pk, trade in tables.by("trades").items():
        decision, outcome = tables.by("decisions")[trade["decision"]], tables.by("outcomes")[trade["outcome"]]
        figures = {
            "agent": decision["agent"],
            "executed_at": opened.get(decision["id"], decision["decided_at"]),
            "side": outcome["side"],
        }
        figures |= {"market": outcome["market"]} | trade_figures(tables, trade, cash_before.get(pk))
        violations.differ("trades", trade, figures)
        if trade["kind"] == "BUY" and pk in cash_before:
            check_limits(tables, trade, cash_before[pk], violations)


def check_limits(tables: Tables, trade: Row, cash: Decimal, violations: Violations) -> None:
    """A bet is legal with the cash before it."""
    rules = tables.rules_of(trade["agent"])
    minimum, fraction = Decimal(rules["minimum_bet"]), Decimal(rules["maximum_bet_fraction"])
    try:
        check_amount(trade["amount"], cash=cash, minimum=minimum, fraction=fraction, path="amount")
    except InstructionRejected as rejection:
        violations.note("trades", trade, f"breaks a limit: {rejection}")


def trade_figures(tables: Tables, trade: Row, cash: Decimal | None) -> Row:
    """The figures that follow from a trade's price, and from its amount (purchases) or shares (sales)."""
    if trade["kind"] == "SELL":
        amount = cents(trade["shares"] * trade["price"])
        return {"amount": amount, "realized_pnl": amount - trade["cost_basis"], "implied_confidence": None}
    shares = (trade["amount"] / trade["price"]).quantize(MICROSHARE, ROUND_HALF_EVEN)
    figures = {"shares": shares, "cost_basis": trade["amount"], "realized_pnl": ZERO}
    if cash:
        largest = cash * Decimal(tables.rules_of(trade["agent"])["maximum_bet_fraction"])
        figures["implied_confidence"] = min(float(trade["amount"] / largest), 1.0)
    return figures


def check_journals(tables: Tables, violations: Violations) -> None:
    """Every change of cash has a cause with that amount and time, and balances add up to the agents' cash."""
    trades, settlements = tables.by("trades"), tables.by("settlements")
    reversals = {(row["agent"], row["journal_sequence"]): row for row in tables.rows("reversals")}
    balance: dict[int, Decimal] = defaultdict(lambda: ZERO)
    length: Counter[int] = Counter()
    newest: dict[int, str] = {}
    booked = set()
    for entry in tables.rows("journal"):
        agent, figures = entry["agent"], {}
        length[agent] += 1
        if entry["sequence"] != length[agent]:
            violations.note("journal", entry, f"should be no. {length[agent]}: a row is missing or doubled")
        if entry["occurred_at"] < newest.get(agent, ""):
            violations.note("journal", entry, f"is of {entry['occurred_at']}, before the entry of {newest[agent]}")
        newest[agent] = entry["occurred_at"]
        if entry["trade"] is not None:
            trade = trades[entry["trade"]]
            bought = trade["kind"] == "BUY"
            figures = {"kind": "buy" if bought else "sell", "amount": -trade["amount"] if bought else trade["amount"]}
            figures |= {"agent": trade["agent"], "occurred_at": trade["executed_at"]}
            booked.add(("trades", entry["trade"]))
        elif entry["settlement"] is not None:
            settlement = settlements[entry["settlement"]]
            figures = {"kind": "refund" if settlement["kind"] == "refunded" else "payout"}
            figures |= {"amount": settlement["payout"], "agent": settlement["agent"]}
            figures["occurred_at"] = settlement["settled_at"]
            booked.add(("settlements", entry["settlement"]))
        elif reversal := reversals.pop((agent, entry["sequence"]), None):
            amount = reversal["payout"] - reversal["previous_payout"]
            figures = {"kind": "reversal", "amount": amount, "occurred_at": reversal["reversed_at"]}
        elif entry["sequence"] == 1:
            started_at = tables.by("cohorts", "number")[tables.by("agents")[agent]["cohort"]]["started_at"]
            opening = Decimal(tables.rules_of(agent)["starting_balance"])
            figures = {"kind": "deposit", "amount": opening, "occurred_at": started_at}
        else:
            violations.note("journal", entry, "has no cause")
        balance[agent] += figures.get("amount", ZERO)
        violations.differ("journal", entry, figures | {"balance": balance[agent]})
    for table, rows in (("trades", trades), ("settlements", settlements)):
        for pk, row in rows.items():
            if (table, pk) not in booked:
                violations.note(table, row, "is not in the journal")
    for reversal in reversals.values():
        violations.note("reversals", reversal, "is not in the journal")
    for pk, agent in tables.by("agents").items():
        if agent["cash"] != balance[pk]:
            violations.note("agents", agent, f"cash is {agent['cash']}, its journal ends at {balance[pk]}")


def check_positions(tables: Tables, violations: Violations) -> None:
    """Holdings follow from trades and settlements, payouts from the results of markets."""
    trades: dict[int, list[Row]] = defaultdict(list)
    for trade in tables.by("trades").values():
        trades[trade["position"]].append(trade)
    settlements, reversals = dict(tables.by("settlements", "position")), tables.grouped("reversals", "position")
    for pk, position in tables.by("positions").items():
        traded = trades.pop(pk, [])
        shares, cost, profit = ZERO, ZERO, ZERO
        identity = {"agent": position["agent"], "outcome": position["outcome"]}
        for trade in traded:
            sign = 1 if trade["kind"] == "BUY" else -1
            if sign < 0:
                check_cost_of_sale(trade, shares, cost, violations)
            shares, cost = shares + sign * trade["shares"], cost + sign * trade["cost_basis"]
            profit += trade["realized_pnl"]
            violations.differ("trades", trade, identity)
        figures = {"opened_at": traded[0]["executed_at"] if traded else None, "status": "open", "closed_at": None}
        if traded and not shares:
            figures |= {"status": "closed", "closed_at": traded[-1]["executed_at"]}
        if settlement := settlements.pop(pk, None):
            corrections = sorted(reversals.pop(pk, []), key=lambda reversal: reversal["sequence"])
            check_payouts(tables, violations, position, settlement, corrections, (shares, cost))
            profit += settlement["realized_pnl"]
            profit += sum((row["payout"] - row["previous_payout"] for row in corrections), ZERO)
            refunded = (corrections or [settlement])[-1]["kind"] == "refunded"
            figures |= {"status": "cancelled" if refunded else "settled", "closed_at": settlement["settled_at"]}
            shares = cost = ZERO
        figures |= {"shares": shares, "cost_basis": cost, "realized_pnl": profit}
        figures["market"] = tables.by("outcomes")[position["outcome"]]["market"]
        violations.differ("positions", position, figures)
    for table, rows in (("trades", trades), ("settlements", settlements), ("reversals", reversals)):
        violations.extend(f"{table}: of position {pk}, which is not in the archive" for pk in rows)


def check_cost_of_sale(trade: Row, shares: Decimal, cost: Decimal, violations: Violations) -> None:
    """A sale takes its part of the shares' cost basis, to a cent; the last one all that is left."""
    part = cost * trade["shares"] / shares if shares else ZERO
    if abs(trade["cost_basis"] - part) >= CENT or (trade["shares"] == shares and trade["cost_basis"] != cost):
        violations.note("trades", trade, f"cost_basis is {trade['cost_basis']}, the shares sold cost {cents(part)}")


def check_payouts(
    tables: Tables,
    violations: Violations,
    position: Row,
    settlement: Row,
    corrections: list[Row],
    holding: tuple[Decimal, Decimal],
) -> None:
    """The last result of a position is that of its market; each payout follows from its own result."""
    shares, cost = holding
    market = tables.by("markets")[settlement["market"]]
    won = market["winning_outcome"] == position["outcome"]
    result = "refunded" if market["status"] == "cancelled" else "won" if won else "lost"
    payouts = {"won": cents(shares), "lost": ZERO, "refunded": cost}
    if market["status"] not in ("resolved", "cancelled"):
        violations.note("settlements", settlement, f"is of a market that is {market['status']}")
    identity = {"agent": position["agent"], "market": position["market"]}
    kind = settlement["kind"] if corrections else result
    payout = payouts.get(kind, ZERO)
    figures = {"kind": kind, "shares": shares, "cost_basis": cost, "payout": payout, "realized_pnl": payout - cost}
    violations.differ("settlements", settlement, figures | identity)
    paid = settlement["payout"]
    for place, correction in enumerate(corrections, start=1):
        kind = result if place == len(corrections) else correction["kind"]
        figures = {"sequence": place, "kind": kind, "previous_payout": paid, "payout": payouts.get(kind)}
        violations.differ("reversals", correction, figures | identity)
        paid = correction["payout"]
