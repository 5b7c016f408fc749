"""Returns after costs: the trades of agents once more, against the order books captured at the freezes.

The rules are those of the arena's verifier (`arena_verifier.order_books`); nothing of the game depends on them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any

from agents.models import Agent, Family, Trade
from agents.records import sha256
from arena_verifier.order_books import (
    OF_FAMILY,
    CostedAccount,
    CostedHolding,
    MarketResult,
    TakerBook,
    account_after_costs,
    account_value,
    family_after_costs,
    figures_after_costs,
)
from arena_verifier.weeks import marked_sundays, split_return
from markets.models import Market, OrderBook, Outcome, PriceObservation
from scoring.selectors.competition import AgentSummary
from scoring.selectors.valuations import Valuation
from scoring.selectors.weekly_returns import agent_ends

Figures = Mapping[str, Any]
"""AFTER_COSTS of an agent, or OF_FAMILY of a family."""
NO_FIGURES: Figures = dict.fromkeys(OF_FAMILY)
TRADE_COLUMNS = {
    "pk": "pk", "agent": "agent_id", "decision": "decision_id", "universe": "decision__universe_id",
    "position": "position_id", "market": "market_id", "outcome": "outcome_id", "kind": "kind", "shares": "shares",
    "amount": "amount", "executed_at": "executed_at",
}  # fmt: skip
BATCH = 5_000
"""Ids in one statement."""


def agents_after_costs(
    agents: Iterable[Agent | AgentSummary], at: datetime | None = None, accounts: dict[str, Any] | None = None
) -> dict[int, Figures]:
    """The figures after costs of agents (family, cohort and methodology loaded), now or as of an instant, by id.

    Besides AFTER_COSTS they have `weeks`, the returns after costs by week; none where a book is missing.

    `accounts` are accounts as they are stored, by id as text. That of an agent with the same trades, results and
    Sundays is taken, since books never change and to walk them takes long; any other is replaced.
    """
    accounts = {} if accounts is None else accounts
    agents = list(agents)
    openings = {agent.pk: agent.cohort.methodology.starting_balance for agent in agents}
    starts, ends = {agent.pk: agent.cohort.week_start for agent in agents}, agent_ends(agents, at)
    sundays = {pk: list(marked_sundays(starts[pk], end)) for pk, end in ends.items()}
    trades: dict[int, list[dict[str, Any]]] = defaultdict(list)
    markets = set()
    rows = Trade.objects.filter(agent__in=openings, **_until("executed_at", at)).order_by("pk")
    for row in rows.values_list(*TRADE_COLUMNS.values()):
        trade = dict(zip(TRADE_COLUMNS, row, strict=True))
        trades[trade["agent"]].append(trade)
        markets.add(trade["market"])
    results = dict(_results(markets, at))
    inputs = {pk: _inputs_version(trades[pk], results, sundays[pk]) for pk in openings}
    outcomes: set[int] = set()
    traded: set[tuple[int, int]] = set()
    for pk, version in inputs.items():
        stored = accounts.get(str(pk))
        if stored is not None and stored["inputs"] == version:
            outcomes.update(map(itemgetter(0), stored["holdings"]))
        else:
            accounts.pop(str(pk), None)
            for trade in trades[pk]:
                outcomes.add(trade["outcome"])
                traded.add((trade["universe"], trade["outcome"]))
    keys = _book_keys(outcomes, at)
    last = {}
    for key in keys:
        last[key[1]] = key
    books = {}
    for book in _stored_books(map(keys.__getitem__, keys.keys() & {*traded, *last.values()})):
        books[book["universe"], book["outcome"]] = TakerBook(book)
    last_books = {outcome: books[key] for outcome, key in last.items()}
    if at is None:
        prices = dict(_rows(Outcome.objects, outcomes, "pk", "price"))
    else:
        prices = {pk: row.price for pk, row in PriceObservation.objects.latest(outcomes, at).items()}
    walked = {}
    for pk, opening in openings.items():
        if str(pk) not in accounts:
            walked[pk] = account_after_costs(opening, trades[pk], books, results, sundays[pk])
    for pk, values in _sunday_values(walked).items():
        accounts[str(pk)] = {"inputs": inputs[pk], **_account_json(walked[pk]), "sundays": values}
    figures: dict[int, Figures] = {}
    for pk, opening in openings.items():
        stored = accounts[str(pk)]
        account, values = _as_account(stored), stored["sundays"]
        weeks: dict[datetime, float] = {}
        if not account.without_book:
            value = account_value(account, prices)
            weeks = split_return(starts[pk], ends[pk], partial(_sunday_value, values), value, opening)
        figures[pk] = {**figures_after_costs(account, opening, prices, last_books), "weeks": weeks}
    return figures


def _sunday_values(accounts: Mapping[int, CostedAccount]) -> dict[int, dict[str, str]]:
    """The value of each account at its Sundays, at the last accepted prices by then; as text."""
    outcomes: dict[datetime, set[int]] = defaultdict(set)
    for account in accounts.values():
        for sunday, then in account.sundays.items():
            outcomes[sunday].update(holding.outcome for holding in then.holdings.values())
    prices: dict[datetime, dict[int, Decimal | None]] = {}
    for sunday, held in outcomes.items():
        observed = PriceObservation.objects.latest(held, sunday) if held else {}
        prices[sunday] = {pk: row.price for pk, row in observed.items()}
    values: dict[int, dict[str, str]] = {}
    for pk, account in accounts.items():
        values[pk] = {}
        for sunday, then in account.sundays.items():
            values[pk][sunday.isoformat()] = str(account_value(then, prices[sunday]))
    return values


def _sunday_value(values: Mapping[str, str], sunday: datetime) -> Decimal | None:
    return Decimal(values[sunday.isoformat()])


def families_after_costs(
    participants: Iterable[Agent | AgentSummary], values: Mapping[int, Valuation], figures: Mapping[int, Figures]
) -> dict[str, dict[str, Any]]:
    """The figures of families by slug, as JSON; `values` and `figures` are those of the participants by id."""
    by_family: dict[Family, list[dict[str, Any]]] = defaultdict(list)
    for agent in participants:
        row = {"return_percent": values[agent.pk].return_percent, **figures[agent.pk]}
        by_family[agent.family].append(row)
    return {family.slug: as_json(family_after_costs(rows)) for family, rows in by_family.items()}


def as_json(figures: Figures) -> dict[str, Any]:
    """The figures with money as text, without those of weeks."""
    value: Decimal | None = figures["liquidation_value"]
    stored = {name: figure for name, figure in figures.items() if name != "weeks"}
    return {**stored, "liquidation_value": None if value is None else str(value)}


def _inputs_version(
    trades: Sequence[Mapping[str, Any]], results: Mapping[int, MarketResult], sundays: Sequence[datetime]
) -> str:
    """The hash of an account's trades, of the results of their markets, which a reversal changes, and its Sundays."""
    lines = [f"{len(trades)} {trades[-1]['pk'] if trades else 0} {len(sundays)}"]
    for market in sorted({trade["market"] for trade in trades} & results.keys()):
        lines.append(f"{market} {results[market].at.isoformat()} {results[market].winner}")
    return sha256("\n".join(lines))


def _account_json(account: CostedAccount) -> dict[str, Any]:
    holdings = []
    for holding in account.holdings.values():
        holdings.append([holding.outcome, holding.market, str(holding.shares), str(holding.cost_basis)])
    return {"cash": str(account.cash), "holdings": holdings, "without_book": account.without_book}


def _as_account(stored: Mapping[str, Any]) -> CostedAccount:
    holdings = {}
    for place, (outcome, market, shares, cost_basis) in enumerate(stored["holdings"]):
        holdings[place] = CostedHolding(outcome, market, Decimal(shares), Decimal(cost_basis))
    return CostedAccount(Decimal(stored["cash"]), holdings, stored["without_book"])


def _until(field: str, at: datetime | None) -> dict[str, datetime]:
    return {} if at is None else {f"{field}__lte": at}


def _book_keys(outcomes: Iterable[int], at: datetime | None) -> dict[tuple[int, int], int]:
    """The ids of all books of outcomes by universe and outcome, in the order of the freezes."""
    books = OrderBook.objects.filter(**_until("universe__frozen_at", at))
    rows = sorted(_rows(books, outcomes, "universe__frozen_at", "universe", "outcome", "pk", by="outcome"))
    keys = {}
    for _, *key, pk in rows:
        keys[key[0], key[1]] = pk
    return keys


def _stored_books(ids: Iterable[int]) -> Iterator[dict[str, Any]]:
    names = ("universe", "outcome", "bids", "asks", "fee_rate", "fee_exponent", "fee_unknown")
    for row in _rows(OrderBook.objects, ids, *names):
        yield dict(zip(names, row, strict=True))


def _results(markets: Iterable[int], at: datetime | None) -> Iterator[tuple[int, MarketResult]]:
    final = Market.objects.exclude(resolved_at=None).filter(**_until("resolved_at", at))
    for pk, resolved_at, winner in _rows(final, markets, "pk", "resolved_at", "winning_outcome"):
        yield pk, MarketResult(resolved_at, winner)


def _rows(rows: Any, ids: Iterable[int], *columns: str, by: str = "pk") -> Iterator[Any]:
    """Columns of the rows whose ids, or whose key `by`, are given; in batches, since statements have a limit."""
    ids = sorted(ids)
    for start in range(0, len(ids), BATCH):
        yield from rows.filter(**{f"{by}__in": ids[start : start + BATCH]}).order_by().values_list(*columns)
