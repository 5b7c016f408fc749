"""Luck and risk of the traders: drawdown, volatility, Sharpe ratio, return on locked capital, and what chance gives.

The clusters of every resampling are calendar weeks, as of the tests of returns, since cohorts share weeks and markets.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Count, QuerySet
from numpy.typing import NDArray

from agents.models import Agent, Trade
from arena_verifier.trading_risk import CapitalMove, returns_on_locked_capital, worst_drawdown
from forecast_rank.metrics.uncertainty import resample_counts
from markets.models import Outcome
from scoring.constants import RISK_RESAMPLES, RISK_SIMULATIONS
from scoring.leaderboard_keys import cached_by_inputs
from scoring.models import BrierScore
from scoring.selectors.competition import AgentSummary
from scoring.selectors.histories import snapshot_ranges
from scoring.selectors.valuations import Valuation
from scoring.selectors.weekly_returns import FOREVER, WeeklyReturns, tracked_until
from scoring.services.scored_bets import leaderboard_scores, past_scores_version

Floats = NDArray[np.float64]
Agents = Sequence[Agent | AgentSummary]
SEED = 0
LEAST_WEEKS = 6
"""Calendar weeks below which nothing is resampled."""
TAILS = (0.975, 0.025)
HALF_A_CENT = 0.005
NO_BETTOR: Mapping[str, Any] = {
    "resolved_stakes": 0,
    "held_profit": None,
    "odds_bettor_share": None,
    "luckiest_bettor_share": None,
}


class ResolvedBet(NamedTuple):
    """A family's purchase on a market with a winner: its price, shares and dollars, and the side's place among all."""

    family: str
    market: int
    won: bool
    price: float
    side: int
    sides: int
    shares: float
    amount: float


class Stake(NamedTuple):
    """Shares of one family in one side of a market; the side wins where a draw from [0, 1) lies in [start, end)."""

    family: str
    start: float
    end: float
    shares: float


@dataclass(slots=True)
class Bettor:
    """A family's resolved stakes: how many, and the dollars paid for and won by them, all held to the end."""

    stakes: int = 0
    paid: float = 0.0
    won: float = 0.0

    @property
    def profit(self) -> float:
        return round(self.won - self.paid, 2)


def trading_risk(
    participants: Agents,
    values: Mapping[int, Valuation],
    weeks: Mapping[str, Mapping[Any, WeeklyReturns]],
    ranked: Sequence[str],
    methodology: str,
    *,
    until: datetime | None = None,
) -> dict[str, Any]:
    """The figures of families by slug, and the number of calendar weeks, as JSON values; `ranked` are slugs.

    `values` are those of the participants by id, `weeks` the weekly returns by family and cohort in per cent of the
    starting balance. What follows from the scores of bets alone is cached for a past instant.
    """
    locked = locked_returns(participants, values, until)
    scores = leaderboard_scores(methodology, until)
    if until is None:
        bettors = odds_bettors(scores, ranked)
    else:
        inputs = [past_scores_version(methodology, until), ranked]
        bettors = cached_by_inputs("odds-bettors", inputs, lambda: odds_bettors(scores, ranked))
    return family_risks(weeks, ranked, locked, bettors)


def family_risks(
    weeks: Mapping[str, Mapping[Any, WeeklyReturns]],
    ranked: Sequence[str],
    locked: Mapping[str, float],
    bettors: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The figures of `trading_risk` from weekly returns, those on locked capital, and those of bettors, by family."""
    families = sorted(weeks)
    contributions, running = _weekly_tables([weeks[family] for family in families])
    counts = resample_counts(contributions.shape[1], RISK_RESAMPLES, SEED).astype(np.float64)
    in_ranking = [place for place, family in enumerate(families) if family in ranked]
    first = first_shares(contributions[in_ranking], counts)
    first_share = {families[place]: share for place, share in zip(in_ranking, first, strict=True)}
    rows = {}
    for family, returns in zip(families, running, strict=True):
        ran = np.isfinite(returns)
        ratio, interval = sharpe_ratio(returns[ran], counts[:, ran])
        rows[family] = {
            "weeks": int(ran.sum()),
            "worst_drawdown": max(map(worst_drawdown, weeks[family].values())),
            "weekly_volatility": float(returns[ran].std(ddof=1)) if ran.sum() > 1 else None,
            "sharpe": ratio,
            "sharpe_ci": interval,
            "return_on_locked_capital": locked.get(family),
            "first_share": first_share.get(family),
            **bettors.get(family, NO_BETTOR),
        }
    return {"families": rows, "weeks": contributions.shape[1]}


def _weekly_tables(families: Sequence[Mapping[Any, WeeklyReturns]]) -> tuple[Floats, Floats]:
    """By family and calendar week: what the week adds to the mean return over cohorts, and its mean in running ones."""
    calendar_weeks: set[Any] = set()
    for cohorts in families:
        calendar_weeks.update(*cohorts.values())
    dates = sorted(calendar_weeks)
    places = {week: place for place, week in enumerate(dates)}
    totals, cohorts_running = np.zeros((len(families), len(dates))), np.zeros((len(families), len(dates)))
    for row, cohorts in enumerate(families):
        for returns in cohorts.values():
            for week, value in returns.items():
                totals[row, places[week]] += value
                cohorts_running[row, places[week]] += 1
    cohorts_played = np.array(list(map(len, families)))
    with np.errstate(invalid="ignore"):
        return totals / cohorts_played[:, None], totals / cohorts_running


def sharpe_ratio(returns: Floats, counts: Floats) -> tuple[float | None, list[float] | None]:
    """The mean of weekly returns divided by their standard deviation, and its 95 % interval by a studentised bootstrap.

    `counts` are the draws of each week in each resample. The standard error is that of Lo (2002) for independent
    returns, √((1 + S²/2) / n); Ledoit and Wolf (2008) recommend to studentise. Without a deviation both are None.
    """
    weeks = len(returns)
    if weeks < 2 or not np.ptp(returns):
        return None, None
    ratio = float(returns.mean() / returns.std(ddof=1))
    if weeks < LEAST_WEEKS:
        return ratio, None
    drawn = counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = counts @ returns / drawn
        variances = (counts @ returns**2 - drawn * means**2) / (drawn - 1)
        ratios = means / np.sqrt(np.where(variances > 1e-12, variances, np.nan))
        distances = (ratios - ratio) / np.sqrt((1 + ratios**2 / 2) / drawn)
    error = np.sqrt((1 + ratio**2 / 2) / weeks)
    low, high = (ratio - float(quantile) * error for quantile in np.nanquantile(distances, TAILS))
    return ratio, [float(low), float(high)]


def first_shares(contributions: Floats, counts: Floats) -> list[float | None]:
    """The share of resamples in which each family has the highest mean return; equal ones share the first place."""
    if contributions.shape[1] < LEAST_WEEKS or not len(contributions):
        return [None] * len(contributions)
    means = counts @ contributions.T
    is_first = means == means.max(axis=1, keepdims=True)
    shares: list[float | None] = (is_first / is_first.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
    return shares


def locked_returns(participants: Agents, values: Mapping[int, Valuation], until: datetime | None) -> dict[str, float]:
    """The profit of each family for a dollar that was locked in positions for a week, at cost, in per cent, by slug."""
    instant = until or FOREVER
    ranges = snapshot_ranges(participants, instant)
    ends: dict[int, datetime] = {}
    profits: dict[int, tuple[str, float]] = {}
    for agent in participants:
        newest = ranges[agent.family.pk].get(agent.pk, (None, None))[1]
        ends[agent.pk] = tracked_until(agent.cohort.week_start, agent.cohort.completed_at, newest, instant)
        profits[agent.pk] = agent.family.slug, float(values[agent.pk].pnl)
    columns = ("agent", "kind", "cost_basis", "executed_at", "position__closed_at")
    moves = []
    for agent_id, kind, cost_basis, *times in Trade.objects.filter(agent__in=ends).order_by("pk").values_list(*columns):
        moves.append(CapitalMove(agent_id, float(cost_basis) * (1 if kind == Trade.Kind.BUY else -1), *times))
    return returns_on_locked_capital(moves, ends, profits)


def odds_bettors(scores: QuerySet[BrierScore], ranked: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The figures of `simulate_bettors` of these scores."""
    outcomes = Outcome.objects.filter(market__in=scores.order_by().values("market")).order_by()
    sides = dict(outcomes.values_list("market").annotate(Count("pk")))
    columns = ("agent__family__slug", "market", "outcome", "market_probability")
    of_trade = ("trade__outcome__index", "trade__shares", "trade__amount")
    bets = []
    for family, market, won, price, side, shares, amount in scores.values_list(*columns, *of_trade):
        bets.append(ResolvedBet(family, market, won, price, side, sides[market], float(shares), float(amount)))
    return simulate_bettors(bets, ranked)


def simulate_bettors(bets: Iterable[ResolvedBet], ranked: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What a bettor with a family's resolved stakes makes if each side wins as often as its price says, by slug.

    Stakes are held to the end, the family's own too. One draw from [0, 1) decides each market in each simulation: side
    i of n wins in the part of length p that begins at (1 − p) · i / (n − 1), so that two sides whose prices sum to 1
    never both win. The luckiest bettor of a simulation is that of all ranked families: who leads was not chosen before.
    """
    stakes, bettors = _stakes(bets)
    gains = {family: np.full(RISK_SIMULATIONS, -bettor.paid) for family, bettor in bettors.items()}
    for market in sorted(stakes):
        # A seed for each market, so that the bets of external agents change nothing of the models' figures.
        draws = np.random.default_rng([SEED, market]).random(RISK_SIMULATIONS)
        for stake in stakes[market]:
            gains[stake.family] += stake.shares * ((draws >= stake.start) & (draws < stake.end))
    luckiest = np.max(
        [gains[family] for family in ranked if family in gains] or [np.full(RISK_SIMULATIONS, -np.inf)], axis=0
    )
    rows: dict[str, dict[str, Any]] = {}
    for family, bettor in bettors.items():
        as_well = bettor.profit - HALF_A_CENT
        rows[family] = {
            "resolved_stakes": bettor.stakes,
            "held_profit": f"{bettor.profit:.2f}",
            "odds_bettor_share": float((gains[family] >= as_well).mean()),
            "luckiest_bettor_share": float((luckiest >= as_well).mean()) if family in ranked else None,
        }
    return rows


def _stakes(bets: Iterable[ResolvedBet]) -> tuple[dict[int, list[Stake]], dict[str, Bettor]]:
    """The stakes by market, and those of each family together."""
    stakes: dict[int, list[Stake]] = defaultdict(list)
    bettors: dict[str, Bettor] = defaultdict(Bettor)
    for bet in bets:
        start = (1 - bet.price) * bet.side / (bet.sides - 1)
        stakes[bet.market].append(Stake(bet.family, start, start + bet.price, bet.shares))
        bettor = bettors[bet.family]
        bettor.stakes += 1
        bettor.paid += bet.amount
        bettor.won += bet.shares * bet.won
    return stakes, bettors
