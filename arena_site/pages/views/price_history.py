"""A market's accepted prices over time, with the agents' trades."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from agents.models import Trade
from arena_site.pages.charts import ChartEvent, Curve, LineChart, chart_over_time, marker_of
from arena_site.pages.filters import money, page_url, price, single_line
from arena_site.pages.views.curves import CurveSet
from markets.models import Market, Outcome, PriceObservation
from scoring.competition import AgentSummary
from scoring.performance import bucket_ends

MAXIMUM_OBSERVATIONS = 3_000
MAXIMUM_INSTANTS = 200
MAXIMUM_SIDES = 6
MAXIMUM_EVENTS = 80
COLORS = ("#2f6db3", "#b5651d", "#3f8f5f", "#8a5aa8", "#a83f4f", "#6b6f2a")
NAME_LENGTH = 40
"""Characters of a side's name in the legend."""


@dataclass(frozen=True, slots=True)
class MarketTrade:
    """A trade on a market with its agent, its outcome and its Brier score."""

    agent: AgentSummary
    outcome: Outcome
    decision: int
    kind: str
    shares: Decimal
    price: Decimal
    amount: Decimal
    implied_confidence: float | None
    executed_at: datetime
    brier: float | None


@dataclass(frozen=True, slots=True)
class PriceHistory:
    """A market's prices as a chart; `sides` is the number of sides drawn."""

    chart: LineChart
    curves: CurveSet
    sides: int


def price_history(market: Market, outcomes: Sequence[Outcome], trades: Sequence[MarketTrade]) -> PriceHistory | None:
    """The history of a market's sides and trades (the latest first); None without an accepted price.

    At the market's resolution the price of a side is the payout of a share.
    """
    drawn = _drawn_outcomes(outcomes, trades)
    known = _accepted_prices(market, drawn)
    times = sorted({at for prices in known.values() for at, _ in prices} | {trade.executed_at for trade in trades})
    if not known or not times:
        return None
    instants = times if len(times) <= MAXIMUM_INSTANTS else bucket_ends(times[0], times[-1])
    names = {outcome.pk: single_line(outcome.side)[:NAME_LENGTH] for outcome in drawn}
    curves = CurveSet(
        instants,
        [
            Curve(names[outcome.pk], COLORS[index], _prices_at(known[outcome.pk], instants), marker=index)
            for index, outcome in enumerate(drawn)
        ],
        unit="price",
    )
    marked = [trade for trade in trades if trade.outcome.pk in known][:MAXIMUM_EVENTS]
    events = [_event(trade, names[trade.outcome.pk]) for trade in marked]
    chart = chart_over_time(instants, curves.curves, height=320, unit="price", events=events)
    return PriceHistory(chart, curves, len(drawn)) if chart else None


def _drawn_outcomes(outcomes: Sequence[Outcome], trades: Sequence[MarketTrade]) -> list[Outcome]:
    """At most MAXIMUM_SIDES outcomes, traded ones first, then by price; in the market's order."""
    traded = {trade.outcome.pk for trade in trades}
    ranked = sorted(outcomes, key=lambda outcome: (outcome.pk not in traded, -(outcome.price or 0), outcome.index))
    chosen = {outcome.pk for outcome in ranked[:MAXIMUM_SIDES]}
    return [outcome for outcome in outcomes if outcome.pk in chosen]


def _accepted_prices(market: Market, outcomes: Sequence[Outcome]) -> dict[int, list[tuple[datetime, Decimal]]]:
    """The accepted prices of each outcome, in order of time."""
    observed = PriceObservation.objects.filter(outcome__in=[o.pk for o in outcomes])
    rows = observed.order_by("-observed_at", "-pk").values_list("outcome", "observed_at", "price")[
        :MAXIMUM_OBSERVATIONS
    ]
    known: dict[int, list[tuple[datetime, Decimal]]] = defaultdict(list)
    for outcome, at, value in reversed(rows):
        if value is not None:
            known[outcome].append((at, value))
    if known and market.status == Market.Status.RESOLVED and market.resolved_at is not None:
        for each in outcomes:
            known[each.pk].append((market.resolved_at, Decimal(each.pk == market.winning_outcome_id)))
    return known


def _prices_at(prices: Sequence[tuple[datetime, Decimal]], instants: Sequence[datetime]) -> list[Decimal | None]:
    """The latest price at each instant."""
    times = [at for at, _ in prices]
    counts = [bisect_right(times, at) for at in instants]
    return [prices[count - 1][1] if count else None for count in counts]


def _event(trade: MarketTrade, side: str) -> ChartEvent:
    family = trade.agent.family
    bought = trade.kind == Trade.Kind.BUY
    text = (
        f"{family.display_name}, cohort {trade.agent.cohort.number}, {'bought' if bought else 'sold'} "
        f"{side} at {price(trade.price)} for {money(trade.amount)}"
    )
    return ChartEvent(
        trade.executed_at,
        trade.price,
        text,
        color=family.color,
        marker=marker_of(family),
        kind="buy" if bought else "sell",
        href=page_url("decision", trade.decision),
    )
