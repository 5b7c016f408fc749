"""Words against bets: what a model said beside what it staked, on the same market at the same day's prices."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from agents.models import Forecast, Trade
from markets.models import Market, QuestionOption
from markets.models.question import day_of
from scoring.metrics.agreement import spearman
from scoring.metrics.brier import brier_score
from scoring.metrics.panel import Floats, from_arrays
from scoring.metrics.returns import log_wealth
from scoring.metrics.uncertainty import cluster_interval

KELLY_FRACTIONS = (1.0, 0.5)
MOST_POINTS = 200
LARGEST = 300.0
"""The natural logarithm of wealth beyond which it is not written out."""


class SpokenBet(NamedTuple):
    """A purchase and what the same release said of the side it bought, in the forecast run of the same universe.

    ask, other_ask : what a share of the side, and of what it excludes, was offered at; the frozen price without a book
    won : None while the market is unresolved
    """

    family: str
    forecast: int
    market: int
    event: str
    stated: float
    confidence: float
    price: float
    ask: float
    other_ask: float
    amount: float
    won: bool | None

    @property
    def edge(self) -> float:
        """What a share is worth by the model's own words, less what it is offered at."""
        return self.stated - self.ask


def words_and_bets(arm: str, methodology: str = "") -> list[dict[str, Any]]:
    """How each family's bets compare with its words, by slug; families that did both on a market only."""
    return by_family(spoken_bets(arm, methodology))


def by_family(bets: Iterable[SpokenBet]) -> list[dict[str, Any]]:
    """The figures of each family that has any of these bets, by slug."""
    of_family: dict[str, list[SpokenBet]] = defaultdict(list)
    for bet in bets:
        of_family[bet.family].append(bet)
    return [{"family": slug, **compared(of_family[slug])} for slug in sorted(of_family)]


def points(bets: Iterable[SpokenBet]) -> dict[str, list[tuple[float, float, bool | None]]]:
    """By family, its newest bets as (stated probability, implied confidence, did the side win): what a chart shows."""
    found: dict[str, list[tuple[float, float, bool | None]]] = defaultdict(list)
    for bet in bets:
        found[bet.family].append((round(bet.stated, 4), round(bet.confidence, 4), bet.won))
    return {slug: newest[-MOST_POINTS:] for slug, newest in found.items()}


def spoken_bets(arm: str, methodology: str = "") -> list[SpokenBet]:
    """Every purchase for which the same release stated probabilities on the same market on the universe's day."""
    trades = Trade.objects.filter(kind=Trade.Kind.BUY, decision__universe__isnull=False)
    if methodology:
        trades = trades.filter(agent__cohort__methodology__version=methodology)
    trades = trades.select_related("agent__family", "market", "decision__universe").defer(
        "decision__universe__market_block", "decision__reasoning", "market__description"
    )
    made = list(trades.order_by("pk"))
    said = _said({trade.market_id for trade in made}, {_day(trade) for trade in made}, arm)
    found = []
    for trade in made:
        universe = trade.decision.universe
        assert universe is not None
        words = said.get((trade.agent.release_id, trade.market_id, _day(trade), universe.methodology))
        if words is not None:
            found.append(_spoken(trade, words))
    return found


def compared(bets: Sequence[SpokenBet]) -> dict[str, Any]:
    """The figures of one family's bets; None where a number does not exist.

    over_betting : mean of implied confidence - stated probability, its interval drawn over events
    spearman : of confidence and stated probability; stake_edge : of the stake and the edge by its own words
    positive_edge : the share of bets that its own words called worth it
    stated_brier, bet_brier, market_brier : of the side bought, on resolved bets
    bet_return : gross per dollar staked on resolved bets; kelly : see `kelly`
    """
    stated, confidence, price, amount, edge = (
        np.array([getattr(bet, name) for bet in bets], dtype=np.float64)
        for name in ("stated", "confidence", "price", "amount", "edge")
    )
    ended = np.array([bet.won is not None for bet in bets], dtype=bool)
    won = np.array([bool(bet.won) for bet in bets], dtype=np.float64)[ended]
    staked = amount[ended].sum()
    return {
        "bets": len(bets),
        "markets": len({bet.market for bet in bets}),
        "events": len({bet.event for bet in bets}),
        "stated": _mean(stated),
        "confidence": _mean(confidence),
        "price": _mean(price),
        "over_betting": _mean(confidence - stated),
        "over_betting_ci": cluster_interval(confidence - stated, [bet.event for bet in bets]) if bets else None,
        "spearman": _known(spearman(stated, confidence)),
        "positive_edge": _mean((edge > 0).astype(np.float64)),
        "stake_edge": _known(spearman(amount, edge)),
        "resolved": int(ended.sum()),
        "stated_brier": _mean(brier_score(stated[ended], won)),
        "bet_brier": _mean(brier_score(confidence[ended], won)),
        "market_brier": _mean(brier_score(price[ended], won)),
        "bet_return": float((won * amount[ended] / price[ended]).sum() / staked) if staked > 0 else None,
        "kelly": kelly(bets),
    }


def kelly(bets: Sequence[SpokenBet]) -> dict[str, Any]:
    """What a dollar would have become by Kelly's rule on the stated probabilities, at the same prices.

    Each forecast of a resolved market counts once, whatever was staked on it and on which side: the rule buys the side,
    or what it excludes, or neither, as the words say at both asks. Bets are taken one after another, each with the
    whole bankroll and as if independent; the half stakes half as much. None without a resolved market.
    """
    once = {(bet.forecast, bet.market): bet for bet in reversed(bets) if bet.won is not None}
    if not once:
        return {"markets": 0, "full": None, "half": None}
    chosen = list(once.values())
    panel = from_arrays(
        [[[bet.stated] for bet in chosen]],
        [[float(bool(bet.won))] for bet in chosen],
        odds=[[bet.ask] for bet in chosen],
        no_odds=[[bet.other_ask] for bet in chosen],
        exclusive=False,
    )
    whole = np.exp(log_wealth(panel))
    return {
        "markets": len(chosen),
        **{
            name: _product(1 + part * (whole - 1)) for name, part in zip(("full", "half"), KELLY_FRACTIONS, strict=True)
        },
    }


class Words(NamedTuple):
    """A forecast, with the names of the options that stand for a market's outcomes, by these' ids."""

    forecast: int
    probabilities: Mapping[str, float]
    prices: Mapping[str, Mapping[str, str | None]]
    names: Mapping[int, str]


def _said(markets: set[int], days: set[datetime], arm: str) -> dict[tuple[int, int, datetime, str], Words]:
    """What was said by release, market, day and methodology."""
    options: dict[int, dict[int, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    of_markets = QuestionOption.objects.filter(outcome__market__in=markets)
    for question, market, outcome, name in of_markets.values_list("question", "outcome__market", "outcome", "name"):
        options[question][market][outcome] = name
    forecasts = Forecast.objects.filter(question__in=options, arm=arm, entry__question_set__day__in=days)
    rows = forecasts.order_by("-pk").values_list(
        "pk", "question", "release", "entry__question_set__day", "methodology", "probabilities", "entry__prices"
    )
    return {
        (release, market, day, methodology): Words(pk, probabilities, prices, names)
        for pk, question, release, day, methodology, probabilities, prices in rows
        for market, names in options[question].items()
    }


def _day(trade: Trade) -> datetime:
    universe = trade.decision.universe
    assert universe is not None
    return day_of(universe.frozen_at)


def _spoken(trade: Trade, words: Words) -> SpokenBet:
    price = float(trade.price)
    if trade.outcome_id in words.names:
        name = words.names[trade.outcome_id]
        stated, own, other = float(words.probabilities[name]), "ask", "no_ask"
    else:  # the question lists the market as one option, its YES: NO is what is left
        (name,) = words.names.values()
        stated, own, other = 1 - float(words.probabilities[name]), "no_ask", "ask"
    quoted = words.prices.get(name) or {}
    market = trade.market
    return SpokenBet(
        family=trade.agent.family.slug,
        forecast=words.forecast,
        market=trade.market_id,
        event=market.event_key,
        stated=stated,
        confidence=trade.implied_confidence or 0.0,
        price=price,
        ask=_ask(quoted.get(own), price),
        other_ask=_ask(quoted.get(other), 1 - price),
        amount=float(trade.amount),
        won=trade.outcome_id == market.winning_outcome_id if market.status == Market.Status.RESOLVED else None,
    )


def _ask(text: str | None, otherwise: float) -> float:
    ask = float(text) if text is not None else otherwise
    return ask if 0 < ask < 1 else otherwise


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _product(factors: Floats) -> float | None:
    """What a dollar becomes; None for what is too large to be written."""
    if (factors <= 0).any():
        return 0.0
    grown = float(np.log(factors).sum())
    return float(np.exp(grown)) if grown < LARGEST else None
