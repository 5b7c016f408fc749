"""Trades after costs: each walks the order book captured at the freeze, and pays the venue's fee.

A purchase spends its amount, fee included, on the asks of its side, and a sale offers its share of the position to the
bids, best level first. Trades of one decision in one book go on where the one before ended. What the book can not fill
counts as not traded. No purchase spends more than the cash after costs; positions pay out as their markets resolve.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_DOWN, Decimal
from functools import cached_property
from statistics import fmean
from typing import Any, NamedTuple, cast

from arena_verifier.intervals import return_error, return_interval
from arena_verifier.rows import MICROSHARE, ZERO, Row, Tables, Violations, cents, mismatches
from arena_verifier.weeks import agent_spans, instant_text, marked_sundays

ONE = Decimal(1)
Level = tuple[Decimal, Decimal]
AFTER_COSTS = ("return_after_costs", "liquidation_value", "trades_without_book")
OF_FAMILY = (*AFTER_COSTS, "return_after_costs_ci", "return_before_costs", "cohorts_with_books", "vanished_share")
COSTED_ACCOUNTS, LAST_BOOKS = "costed accounts", "last books"


class TakerBook:
    """The levels of a captured book, best first, each a price after the fee for takers and a number of shares."""

    def __init__(self, row: Row) -> None:
        self.row = row

    @cached_property
    def bids(self) -> list[Level]:
        return [(price - self.fee(price), size) for price, size in numbers(self.row["bids"])]

    @cached_property
    def asks(self) -> list[Level]:
        return [(price + self.fee(price), size) for price, size in numbers(self.row["asks"])]

    def fee(self, price: Decimal) -> Decimal:
        """The fee of a share: rate × (p(1 − p))^exponent."""
        rate, exponent = self.row["fee_rate"], self.row["fee_exponent"]
        return ZERO if rate is None else rate * (price * (ONE - price)) ** exponent


def numbers(levels: Iterable[Sequence[str]]) -> Iterator[Level]:
    for price, size in levels:
        yield Decimal(price), Decimal(size)


@dataclass(slots=True)
class CostedHolding:
    """Shares of one position after costs, and what they cost; `ledger_shares` are those of the ledger."""

    outcome: int
    market: int
    shares: Decimal = ZERO
    cost_basis: Decimal = ZERO
    ledger_shares: Decimal = ZERO


@dataclass(slots=True)
class CostedAccount:
    """An agent's cash and open holdings after costs, and how many of its trades have no book or no known fee."""

    cash: Decimal
    holdings: dict[int, CostedHolding] = field(default_factory=dict)
    without_book: int = 0
    sundays: dict[Any, "CostedAccount"] = field(default_factory=dict)
    """The account as it stood at instants."""


class MarketResult(NamedTuple):
    """When a market was resolved or cancelled, and the outcome that pays; None if it was cancelled."""

    at: Any
    winner: int | None


def account_after_costs(
    opening: Decimal,
    trades: Iterable[Row],
    books: Mapping[tuple[int, int], TakerBook],
    results: Mapping[int, MarketResult],
    sundays: Iterable[Any] = (),
) -> CostedAccount:
    """The account of an agent after its trades, in their order, and after what its markets paid.

    A trade has decision, universe, position, market, outcome, kind, shares, amount and executed_at. Books are by
    universe and outcome, results by market. The account also holds itself as it stood at the `sundays`, in order.
    """
    account, waiting = CostedAccount(opening), list(sundays)
    offsets: dict[tuple[int, int, str], Decimal] = defaultdict(Decimal)
    for trade in trades:
        while waiting and waiting[0] < trade["executed_at"]:
            remember(account, results, waiting.pop(0))
        pay_out(account, results, trade["executed_at"])
        position, kind = trade["position"], trade["kind"]
        if position not in account.holdings:
            account.holdings[position] = CostedHolding(trade["outcome"], trade["market"])
        holding = account.holdings[position]
        book = books.get((trade["universe"], trade["outcome"]))
        place = (trade["decision"], trade["outcome"], kind)
        if book is None or book.row["fee_unknown"]:
            account.without_book += 1
        elif kind == "BUY":
            dollars = max(min(trade["amount"], account.cash), ZERO)
            shares, paid = walk(book.asks, offsets[place], dollars=dollars)
            holding.shares, holding.cost_basis = holding.shares + shares, holding.cost_basis + paid
            account.cash -= paid
            offsets[place] += shares
        else:
            sold = min(trade["shares"] / holding.ledger_shares, ONE) if holding.ledger_shares else ONE
            offered = (holding.shares * sold).quantize(MICROSHARE, ROUND_DOWN)
            shares, received = walk(book.bids, offsets[place], shares=offered)
            if shares:
                cost = cents(holding.cost_basis * shares / holding.shares)
                holding.shares, holding.cost_basis = holding.shares - shares, holding.cost_basis - cost
            account.cash += received
            offsets[place] += shares
        holding.ledger_shares += trade["shares"] if kind == "BUY" else -trade["shares"]
    for sunday in waiting:
        remember(account, results, sunday)
    pay_out(account, results)
    account.holdings = {position: holding for position, holding in account.holdings.items() if holding.shares}
    return account


def remember(account: CostedAccount, results: Mapping[int, MarketResult], at: Any) -> None:
    """Adds the account as it stands at an instant, after what markets paid by then."""
    pay_out(account, results, at)
    held = {pk: replace(holding) for pk, holding in account.holdings.items() if holding.shares}
    account.sundays[at] = CostedAccount(account.cash, held)


def account_value(account: CostedAccount, prices: Mapping[int, Decimal | None]) -> Decimal:
    """Cash and holdings at prices by outcome, each to the cent; at cost where there is none."""
    total = account.cash
    for holding in account.holdings.values():
        price = prices.get(holding.outcome)
        total += holding.cost_basis if price is None else cents(holding.shares * price)
    return total


def walk(
    levels: Sequence[Level],
    offset: Decimal = ZERO,
    *,
    dollars: Decimal | None = None,
    shares: Decimal | None = None,
) -> tuple[Decimal, Decimal]:
    """The shares traded, to the millionth, and the dollars for them, to the cent, up to a number of either.

    The first `offset` shares of the levels are gone.
    """
    total_shares, total_dollars = ZERO, ZERO
    for price, size in levels:
        if price <= 0:
            continue  # nobody sells for less than the fee
        free = max(size - offset, ZERO)
        offset = max(offset - size, ZERO)
        if dollars is not None:
            free = min(free, (dollars - total_dollars) / price)
        if shares is not None:
            free = min(free, shares - total_shares)
        total_shares, total_dollars = total_shares + free, total_dollars + free * price
    return total_shares.quantize(MICROSHARE, ROUND_DOWN), cents(total_dollars)


def pay_out(account: CostedAccount, results: Mapping[int, MarketResult], until: Any = None) -> None:
    """Pays the holdings whose market was resolved by an instant, or at any time."""
    for holding in account.holdings.values():
        result = results.get(holding.market)
        if not holding.shares or result is None or (until is not None and result.at > until):
            continue
        if result.winner is None:
            account.cash += holding.cost_basis
        elif result.winner == holding.outcome:
            account.cash += cents(holding.shares)
        holding.shares = holding.cost_basis = ZERO


def figures_after_costs(
    account: CostedAccount,
    opening: Decimal,
    prices: Mapping[int, Decimal | None],
    last_books: Mapping[int, TakerBook],
) -> Row:
    """The figures of an account by the last prices and the last books, by outcome; null where a book is missing.

    return_after_costs : of the opening balance, in per cent; holdings at the last accepted prices
    liquidation_value : cash, and what the bids of the last books give for the holdings
    trades_without_book : trades of which no book was captured, or whose fee is unknown
    """
    figures: Row = {"return_after_costs": None, "liquidation_value": None, "trades_without_book": account.without_book}
    if account.without_book:
        return figures
    total, liquidation = account_value(account, prices), cast("Decimal | None", account.cash)
    for holding in account.holdings.values():
        book = last_books[holding.outcome]
        if liquidation is not None:
            is_known = not book.row["fee_unknown"]
            liquidation = liquidation + walk(book.bids, shares=holding.shares)[1] if is_known else None
    return figures | {
        "return_after_costs": float((total - opening) / opening * 100),
        "liquidation_value": liquidation,
    }


def family_after_costs(agents: Iterable[Row]) -> Row:
    """A family's figures: means over its agents in the cohorts of which no book is missing.

    A row has `return_percent`, at midpoints, the AFTER_COSTS and `weeks`, the returns after costs by week.
    `return_after_costs_ci` is the interval of returns, over calendar weeks. `vanished_share` is the share of the profit
    before costs, over these cohorts, that costs take; null where there is no profit.
    """
    figures: Row = dict.fromkeys(OF_FAMILY) | {"cohorts_with_books": 0, "trades_without_book": 0}
    before, after = [], []
    weeks: dict[int, Mapping[Any, float]] = {}
    liquidation: list[Any] = []
    for row in agents:
        figures["trades_without_book"] += row["trades_without_book"]
        if not row["trades_without_book"]:
            before.append(row["return_percent"])
            after.append(row["return_after_costs"])
            weeks[len(weeks)] = row["weeks"]
            liquidation.append(row["liquidation_value"])
    if not before:
        return figures
    profit, remainder = fmean(before), fmean(after)
    half = return_error(weeks)[1]
    return figures | {
        "return_after_costs_ci": return_interval(remainder, half),
        "cohorts_with_books": len(before),
        "return_before_costs": profit,
        "return_after_costs": remainder,
        "vanished_share": (profit - remainder) / profit if profit > 0 else None,
        "liquidation_value": None if None in liquidation else cents(sum(liquidation) / len(liquidation)),
    }


def check_books(tables: Tables, violations: Violations) -> None:
    """Each book is of a side of the market that it names, its levels the best first."""
    for row in tables.rows("books"):
        outcome = tables.by("outcomes")[row["outcome"]]
        name = f"books: outcome {row['outcome']} in universe {row['universe']}"
        violations.extend(mismatches(name, row, {"market": outcome["market"], "side": outcome["side"]}))
        if row["fee_unknown"] and row["fee_rate"] is not None:
            violations.append(f"{name} has a fee that is unknown and stated")
        book = TakerBook(row | {"fee_rate": None})
        if sorted(book.asks) != book.asks or sorted(book.bids, reverse=True) != book.bids:
            violations.append(f"{name} has levels that are not in the order of their prices")


def check_after_costs(tables: Tables, violations: Violations) -> None:
    """The figures after costs of each agent follow from its trades, the books, the results of markets and prices."""
    archived, accounts = dict(tables.by("after_costs", "agent")), costed_accounts(tables)
    prices = {pk: outcome["price"] for pk, outcome in tables.by("outcomes").items()}
    for pk in tables.by("agents"):
        opening = Decimal(tables.rules_of(pk)["starting_balance"])
        row = archived.pop(pk, None)
        if row is None:
            violations.append(f"after_costs: agent {pk} is missing")
        else:
            figures = figures_after_costs(accounts[pk], opening, prices, last_books(tables))
            violations.extend(mismatches(f"after_costs: agent {pk}", row, figures))
    violations.extend(f"after_costs: agent {pk} is not in the archive" for pk in archived)


def captured_books(tables: Tables) -> Iterator[TakerBook]:
    """All books in the order of their freezes."""
    frozen = {pk: universe["frozen_at"] for pk, universe in tables.by("universes").items()}
    yield from map(TakerBook, sorted(tables.rows("books"), key=lambda row: (frozen[row["universe"]], row["universe"])))


def last_books(tables: Tables) -> dict[int, TakerBook]:
    """The last book of each outcome."""
    if LAST_BOOKS not in tables.cache:
        tables.cache[LAST_BOOKS] = {book.row["outcome"]: book for book in captured_books(tables)}
    return tables.cache[LAST_BOOKS]  # type: ignore[no-any-return]


def costed_accounts(tables: Tables) -> dict[int, CostedAccount]:
    """The account after costs of each agent, walked once, with the Sundays at which its weeks end."""
    if COSTED_ACCOUNTS not in tables.cache:
        tables.cache[COSTED_ACCOUNTS] = dict(walk_accounts(tables))
    return tables.cache[COSTED_ACCOUNTS]  # type: ignore[no-any-return]


def walk_accounts(tables: Tables) -> Iterator[tuple[int, CostedAccount]]:
    """The accounts by agent."""
    decisions, results = tables.by("decisions"), {}
    books = {(book.row["universe"], book.row["outcome"]): book for book in captured_books(tables)}
    for pk, market in tables.by("markets").items():
        if market["status"] in ("resolved", "cancelled"):
            results[pk] = MarketResult(market["resolved_at"], market["winning_outcome"])
    trades = defaultdict(list)
    for _, trade in sorted(tables.by("trades").items()):
        trades[trade["agent"]].append(trade | {"universe": decisions[trade["decision"]]["universe"]})
    for pk, span in agent_spans(tables).items():
        opening = Decimal(tables.rules_of(pk)["starting_balance"])
        yield pk, account_after_costs(opening, trades[pk], books, results, map(instant_text, marked_sundays(*span)))
