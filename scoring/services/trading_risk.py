"""Luck and risk of the traders: drawdown, volatility, and what chance gives."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Count, QuerySet

from markets.models import Outcome
from scoring.constants import RISK_SIMULATIONS
from scoring.leaderboard_keys import cached_by_inputs
from scoring.models import BrierScore
from scoring.selectors.scored_bets import leaderboard_scores, past_scores_version
from scoring.selectors.weekly_returns import WeeklyReturns

SEED = 0
FULL = 100.0
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
    weeks: Mapping[str, Mapping[Any, WeeklyReturns]],
    ranked: Sequence[str],
    methodology: str,
    *,
    until: datetime | None = None,
) -> dict[str, Any]:
    """The figures of families by slug, and the number of calendar weeks, as JSON values; `ranked` are slugs.

    `weeks` has the weekly returns by family and cohort in per cent of the starting balance. What follows from the
    scores of bets alone is cached for a past instant.
    """
    scores = leaderboard_scores(methodology, until)
    if until is None:
        bettors = odds_bettors(scores, ranked)
    else:
        inputs = [past_scores_version(methodology, until), ranked]
        bettors = cached_by_inputs("odds-bettors", inputs, lambda: odds_bettors(scores, ranked))
    return family_risks(weeks, bettors)


def family_risks(
    weeks: Mapping[str, Mapping[Any, WeeklyReturns]], bettors: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The figures of `trading_risk` from weekly returns and those of bettors, by family."""
    rows: dict[str, dict[str, Any]] = {}
    calendar_weeks: set[Any] = set()
    for family in sorted(weeks):
        by_week: dict[Any, list[float]] = defaultdict(list)
        for returns in weeks[family].values():
            for week, value in returns.items():
                by_week[week].append(value)
        calendar_weeks.update(by_week)
        means = list(map(fmean, by_week.values()))
        rows[family] = {
            "weeks": len(means),
            "worst_drawdown": max(map(worst_drawdown, weeks[family].values())),
            "weekly_volatility": stdev(means) if len(means) > 1 else None,
            **bettors.get(family, NO_BETTOR),
        }
    return {"families": rows, "weeks": len(calendar_weeks)}


def worst_drawdown(returns: Mapping[Any, float]) -> float:
    """The largest fall of a portfolio from the highest value before, in per cent of that, by its values on Sundays."""
    values = list(accumulate((returns[week] for week in sorted(returns)), initial=FULL))
    return max(FULL * (high - value) / high for value, high in zip(values, accumulate(values, max), strict=True))


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
    Profits are compared by their deviations from what the prices promise, so that no reckless rival raises the hurdle.
    """
    stakes, bettors = _stakes(bets)
    gains = {family: np.full(RISK_SIMULATIONS, -bettor.paid) for family, bettor in bettors.items()}
    for market in sorted(stakes):
        # A seed for each market, so that the bets of external agents change nothing of the models' figures.
        draws = np.random.default_rng([SEED, market]).random(RISK_SIMULATIONS)
        for stake in stakes[market]:
            gains[stake.family] += stake.shares * ((draws >= stake.start) & (draws < stake.end))
    centre = {family: float(gain.mean()) for family, gain in gains.items()}
    deviation = {family: float(gain.std()) or 1.0 for family, gain in gains.items()}
    studentised = [(gains[family] - centre[family]) / deviation[family] for family in ranked if family in gains]
    luckiest = np.max(studentised or [np.full(RISK_SIMULATIONS, -np.inf)], axis=0)
    rows: dict[str, dict[str, Any]] = {}
    for family, bettor in bettors.items():
        as_well = bettor.profit - HALF_A_CENT
        luck = (as_well - centre[family]) / deviation[family]
        rows[family] = {
            "resolved_stakes": bettor.stakes,
            "held_profit": f"{bettor.profit:.2f}",
            "odds_bettor_share": float((gains[family] >= as_well).mean()),
            "luckiest_bettor_share": float((luckiest >= luck).mean()) if family in ranked else None,
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
