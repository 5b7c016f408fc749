"""A market's accepted prices over time, with the agents' trades."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

from agents.models import Trade
from arena_site.pages.charts.curves import ChartEvent, Curve
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import line_chart
from arena_site.pages.charts.markers import marker_of
from arena_site.pages.filters import count, money, page_url, price, single_line
from markets.models import Market, Outcome, PriceObservation
from scoring.selectors.competition import AgentSummary
from scoring.selectors.performance import bucket_ends

MAXIMUM_OBSERVATIONS = 3_000
MAXIMUM_INSTANTS = 200
MAXIMUM_EVENTS = 80
COLORS = ("#2f6db3", "#b5651d", "#3f8f5f", "#8a5aa8", "#a83f4f", "#6b6f2a")
NAME_LENGTH = 40
"""Characters of a side's name in the legend."""


def price_figure(
    market: Market,
    outcomes: Sequence[Outcome],
    trades: Sequence[Any],
    agents: Mapping[int, AgentSummary],
    until: datetime | None = None,
) -> Figure | None:
    """The chart of a market's sides and trades (the latest first), up to an instant.

    None without an accepted price. At the market's resolution the price of a side is the payout of a share.
    """
    trades = [trade for trade in trades if until is None or trade.executed_at <= until]
    drawn = _drawn_outcomes(outcomes, trades)
    accepted = _accepted_prices(market, drawn, until)
    times = sorted({at for at, _ in chain(*accepted.values())} | set(map(attrgetter("executed_at"), trades)))
    if not accepted or not times:
        return None
    instants = times if len(times) <= MAXIMUM_INSTANTS else bucket_ends(times[0], times[-1])
    names, curves = {}, []
    for index, (outcome, color) in enumerate(zip(drawn, COLORS, strict=False)):
        name = names[outcome.pk] = single_line(outcome.side)[:NAME_LENGTH]
        curves.append(Curve(name, color, _prices_at(accepted[outcome.pk], instants), marker=index))
    marked = [trade for trade in trades if trade.outcome in accepted]
    events = [_event(trade, agents[trade.agent], names[trade.outcome]) for trade in marked[:MAXIMUM_EVENTS]]
    chart = line_chart(instants, curves, y_title="Price (%)", height=360, unit="price", events=events)
    if chart is None:
        return None
    number = f"{count(len(trades))} trade{'' if len(trades) == 1 else 's'}"
    note = "Accepted prices of each side. Filled markers are purchases by agents, hollow ones are their sales."
    if len(drawn) < len(outcomes):
        note += f" {len(drawn)} of {len(outcomes)} sides: those that were traded, then those with the highest prices."
    title = f"How the market’s prices moved, with {number} by agents."
    return Figure("prices", title, chart, note, at=instants[-1])


def _drawn_outcomes(outcomes: Sequence[Outcome], trades: Sequence[Any]) -> list[Outcome]:
    """At most as many outcomes as COLORS, traded ones first, then by price; in the market's order."""
    traded = set(map(attrgetter("outcome"), trades))
    ranked = sorted(outcomes, key=lambda outcome: (outcome.pk not in traded, -(outcome.price or 0), outcome.index))
    return sorted(ranked[: len(COLORS)], key=outcomes.index)


def _accepted_prices(
    market: Market, outcomes: Sequence[Outcome], until: datetime | None
) -> dict[int, list[tuple[datetime, Decimal]]]:
    """The accepted prices of each outcome, in order of time."""
    observed = PriceObservation.objects.filter(outcome__in=outcomes).order_by("-observed_at", "-pk")
    if until is not None:
        observed = observed.filter(observed_at__lte=until)
    rows = observed.values_list("outcome", "observed_at", "price")[:MAXIMUM_OBSERVATIONS]
    accepted: dict[int, list[tuple[datetime, Decimal]]] = defaultdict(list)
    for outcome_id, at, value in reversed(rows):
        if value is not None:
            accepted[outcome_id].append((at, value))
    if accepted and market.status == Market.Status.RESOLVED and market.resolved_by(until) and market.resolved_at:
        for outcome in outcomes:
            accepted[outcome.pk].append((market.resolved_at, Decimal(outcome.pk == market.winning_outcome_id)))
    return accepted


def _prices_at(prices: Sequence[tuple[datetime, Decimal]], instants: Sequence[datetime]) -> list[Decimal | None]:
    """The latest price at each instant."""
    latest = []
    for instant in instants:
        number = bisect_right(prices, instant, key=itemgetter(0))
        latest.append(prices[number - 1][1] if number else None)
    return latest


def _event(trade: Any, agent: AgentSummary, side: str) -> ChartEvent:
    family = agent.family
    kind, verb = ("buy", "bought") if trade.kind == Trade.Kind.BUY else ("sell", "sold")
    text = (
        f"{family.display_name}, cohort {agent.cohort.number}, {verb} "
        f"{side} at {price(trade.price)} for {money(trade.amount)}"
    )
    href = page_url("decision", trade.decision)
    return ChartEvent(trade.executed_at, trade.price, text, family.color, marker_of(family), kind, href)
