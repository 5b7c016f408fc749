"""What a market's sides were priced at over time, with every entry and exit of an agent."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from agents.models import Trade
from markets.models import Market, Outcome, PriceObservation
from scoring.charts import Curve, Event, LineChart, line_chart, mark_of
from scoring.performance import bucket_ends
from scoring.roster import Player
from scoring.templatetags.arena import money, path, plain, price
from scoring.views.curves import Curves

MOST_READ = 3_000
"""Observations that a history is drawn from, the latest."""
MOST_INSTANTS = 200
MOST_SIDES = 6
MOST_EVENTS = 80
COLORS = ("#2f6db3", "#b5651d", "#3f8f5f", "#8a5aa8", "#a83f4f", "#6b6f2a")
NAME = 40
"""Characters of a side's name that a legend shows."""


@dataclass(frozen=True, slots=True)
class Deal:
    """A trade on a market, with whoever made it, and its Brier score where there is one."""

    player: Player
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
class History:
    """A market's prices as a chart, with its data."""

    chart: LineChart
    curves: Curves
    sides: int
    """How many sides are drawn."""


def price_history(market: Market, outcomes: Sequence[Outcome], deals: Sequence[Deal]) -> History | None:
    """The accepted prices of a market's sides; deals (the latest first) mark who entered and left.

    At its resolution each side has what a share of it paid. None while no price was ever accepted.
    """
    drawn = _drawn(outcomes, deals)
    known = _known(market, drawn)
    times = sorted({at for at, _ in (pair for pairs in known.values() for pair in pairs)})
    times = sorted({*times, *(deal.executed_at for deal in deals)})
    if not known or not times:
        return None
    instants = times if len(times) <= MOST_INSTANTS else bucket_ends(times[0], times[-1])
    names = {outcome.pk: plain(outcome.side)[:NAME] for outcome in drawn}
    curves = Curves(
        instants,
        [
            Curve(names[outcome.pk], COLORS[place], _at(known[outcome.pk], instants), mark=place)
            for place, outcome in enumerate(drawn)
        ],
        unit="price",
    )
    marked = [deal for deal in deals if deal.outcome.pk in known][:MOST_EVENTS]
    events = [_event(deal, names[deal.outcome.pk]) for deal in marked]
    chart = line_chart(instants, curves.curves, height=320, unit="price", events=events)
    return History(chart, curves, len(drawn)) if chart else None


def _drawn(outcomes: Sequence[Outcome], deals: Sequence[Deal]) -> list[Outcome]:
    """The sides that were traded, then those with the highest price, in the market's order."""
    traded = {deal.outcome.pk for deal in deals}
    ranked = sorted(outcomes, key=lambda outcome: (outcome.pk not in traded, -(outcome.price or 0), outcome.index))
    chosen = {outcome.pk for outcome in ranked[:MOST_SIDES]}
    return [outcome for outcome in outcomes if outcome.pk in chosen]


def _known(market: Market, outcomes: Sequence[Outcome]) -> dict[int, list[tuple[datetime, Decimal]]]:
    """The accepted prices of each side, in order of time."""
    observed = PriceObservation.objects.filter(outcome__in=[o.pk for o in outcomes])
    rows = observed.order_by("-observed_at", "-pk").values_list("outcome", "observed_at", "price")[:MOST_READ]
    known: dict[int, list[tuple[datetime, Decimal]]] = defaultdict(list)
    for outcome, at, value in reversed(rows):
        if value is not None:
            known[outcome].append((at, value))
    if known and market.status == Market.Status.RESOLVED and market.resolved_at is not None:
        for each in outcomes:
            known[each.pk].append((market.resolved_at, Decimal(each.pk == market.winning_outcome_id)))
    return known


def _at(prices: Sequence[tuple[datetime, Decimal]], instants: Sequence[datetime]) -> list[Decimal | None]:
    """The newest price at each instant."""
    times = [at for at, _ in prices]
    places = [bisect_right(times, at) for at in instants]
    return [prices[place - 1][1] if place else None for place in places]


def _event(deal: Deal, side: str) -> Event:
    family = deal.player.family
    bought = deal.kind == Trade.Kind.BUY
    said = (
        f"{family.display_name}, cohort {deal.player.cohort.number}, {'bought' if bought else 'sold'} "
        f"{side} at {price(deal.price)} for {money(deal.amount)}"
    )
    return Event(
        deal.executed_at,
        deal.price,
        said,
        color=family.color,
        mark=mark_of(family),
        kind="buy" if bought else "sell",
        href=path("decision", deal.decision),
    )
