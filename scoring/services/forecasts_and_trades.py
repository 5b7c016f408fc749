"""Forecasts beside trades: the probability that a model stated and its stake on the same market and day."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from agents.models import Forecast, Trade
from forecast_rank import to_json_value
from forecast_rank.metrics.agreement import spearman
from forecast_rank.metrics.brier import brier_score
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.uncertainty import LEVEL
from foundation.bulk import rows_by
from markets.models import Market, QuestionEntry, QuestionOption, QuestionSet, Universe
from markets.models.question import day_of
from scoring.selectors.event_tests import difference_interval, difference_test

MAX_POINTS = 200


class ForecastBet(NamedTuple):
    """A purchase and the same release's forecast of the side it bought, made on the day its universe was frozen.

    ask : price of a share of the side; the frozen price without an order book
    won : None while the market is unresolved
    largest : the largest legal stake as a share of cash
    """

    family: str
    market: int
    event: str
    probability: float
    confidence: float
    price: float
    ask: float
    amount: float
    won: bool | None
    largest: float


class Purchase(NamedTuple):
    """Columns of a purchase, with those of its agent and of its decision's universe."""

    market: int
    outcome: int
    price: Decimal
    amount: Decimal
    implied_confidence: float | None
    family: str
    release: int
    frozen_at: datetime
    methodology: str
    largest: Decimal


PURCHASE_COLUMNS = (
    *("market", "outcome", "price", "amount", "implied_confidence", "agent__family__slug", "agent__release"),
    *("decision__universe__frozen_at", "decision__universe__methodology"),
    "agent__cohort__methodology__maximum_bet_fraction",
)


class MarketForecast(NamedTuple):
    """A forecast with the prices that its question had, and the option's name for each outcome of one market."""

    probabilities: Mapping[str, Any]
    prices: Mapping[str, Any]
    names: Mapping[int, str]


def family_figures(bets: Iterable[ForecastBet]) -> list[dict[str, Any]]:
    """The figures of each family that has any of these bets, by slug."""
    of_family: dict[str, list[ForecastBet]] = defaultdict(list)
    for bet in bets:
        of_family[bet.family].append(bet)
    return [{"family": slug, **_figures(of_family[slug], of=len(of_family))} for slug in sorted(of_family)]


def stake_points(bets: Iterable[ForecastBet]) -> dict[str, list[tuple[float, float, bool | None]]]:
    """The newest bets of each family as (stated probability, implied confidence, whether the side won), for charts."""
    points: dict[str, list[tuple[float, float, bool | None]]] = defaultdict(list)
    for bet in bets:
        points[bet.family].append((round(bet.probability, 4), round(bet.confidence, 4), bet.won))
    return {slug: newest[-MAX_POINTS:] for slug, newest in points.items()}


def forecast_bets(arm: str, methodology: str = "", *, at: datetime | None = None) -> list[ForecastBet]:
    """Every purchase for which the same release has a forecast of the same market on the universe's day.

    With `at`, the purchases made and the markets resolved by then.
    """
    # Only purchases that a forecast can stand beside: on universes of a day with questions, of markets with questions.
    days = set(QuestionSet.objects.order_by().values_list("day", flat=True))
    frozen = Universe.objects.order_by().values_list("pk", "frozen_at")
    universes = [pk for pk, frozen_at in frozen if day_of(frozen_at) in days]
    markets_with_questions = QuestionOption.objects.exclude(outcome=None).values("outcome__market")
    purchases = Trade.objects.filter(
        kind=Trade.Kind.BUY, market__in=markets_with_questions, decision__universe__in=universes
    )
    purchases = purchases.filter(agent__cohort__voided_at=None)
    if methodology:
        purchases = purchases.filter(agent__cohort__methodology__version=methodology)
    if at is not None:
        purchases = purchases.filter(executed_at__lte=at)
    # Columns, since a model with its relations for each row would take three quarters of the time.
    rows = list(map(Purchase._make, purchases.order_by("pk").values_list(*PURCHASE_COLUMNS)))
    markets = Market.objects.only("source", "event_id", "status", "winning_outcome", "resolved_at")
    market_of = markets.in_bulk({purchase.market for purchase in rows})
    forecasts = _market_forecasts(market_of.keys(), {day_of(purchase.frozen_at) for purchase in rows}, arm)
    bets = []
    for purchase in rows:
        forecast = forecasts.get((purchase.release, purchase.market, day_of(purchase.frozen_at), purchase.methodology))
        if forecast is not None:
            bets.append(_forecast_bet(purchase, market_of[purchase.market], forecast, at))
    return bets


def _figures(bets: Sequence[ForecastBet], *, of: int) -> dict[str, Any]:
    """The figures of one family's bets; None where a number does not exist.

    over_betting : mean of implied confidence - stated probability, its interval drawn over events
    stake, kelly_stake : means as shares of cash; over_kelly : the mean of their difference
    over_kelly_ci : over events, corrected for the number of families (`of`), since findings speak of the largest
    over_kelly_test : the test of it against 0, not corrected
    spearman : of confidence and stated probability; stake_edge : of the stake and the edge
    positive_edge : the share of bets with an edge (stated probability less the ask: a share's profit) above 0
    stated_brier, bet_brier, market_brier : of the side bought, on resolved bets
    bet_return : gross per dollar staked on resolved bets
    """
    columns = dict(zip(ForecastBet._fields, map(np.array, zip(*bets, strict=True)), strict=True))
    probability, confidence, price = columns["probability"], columns["confidence"], columns["price"]
    amount, largest, events = columns["amount"], columns["largest"], columns["event"].tolist()
    edge, stake = probability - columns["ask"], confidence * largest
    # The share of cash that Kelly's rule stakes at the model's own forecast and the price that it paid.
    kelly_stake = np.minimum(np.maximum((probability - price) / (1 - price), 0.0), largest)
    won = columns["won"].astype(np.float64)
    resolved = ~np.isnan(won)
    won, staked = won[resolved], amount[resolved].sum()
    return {
        "bets": len(bets),
        "markets": len(set(columns["market"].tolist())),
        "events": len(set(events)),
        "stated": _mean(probability),
        "confidence": _mean(confidence),
        "price": _mean(price),
        "over_betting": _mean(confidence - probability),
        "over_betting_ci": difference_interval(confidence - probability, events),
        "stake": _mean(stake),
        "kelly_stake": _mean(kelly_stake),
        "over_kelly": _mean(stake - kelly_stake),
        "over_kelly_ci": difference_interval(stake - kelly_stake, events, level=1 - (1 - LEVEL) / of),
        "over_kelly_test": difference_test(stake - kelly_stake, events),
        "spearman": to_json_value(spearman(probability, confidence)),
        "positive_edge": _mean((edge > 0).astype(np.float64)),
        "stake_edge": to_json_value(spearman(amount, edge)),
        "resolved": int(resolved.sum()),
        "stated_brier": _mean(brier_score(probability[resolved], won)),
        "bet_brier": _mean(brier_score(confidence[resolved], won)),
        "market_brier": _mean(brier_score(price[resolved], won)),
        "bet_return": float((won * amount[resolved] / price[resolved]).sum() / staked) if staked > 0 else None,
    }


def _market_forecasts(
    markets: Collection[int], days: set[datetime], arm: str
) -> dict[tuple[int, int, datetime, str], MarketForecast]:
    """The forecasts of markets by release, market, day and methodology; of several the oldest."""
    options: dict[int, dict[int, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    of_markets = QuestionOption.objects.filter(outcome__market__in=list(markets))
    for option in of_markets.values_list("question", "outcome__market", "outcome", "name", named=True):
        options[option.question][option.outcome__market][option.outcome] = option.name
    entries = QuestionEntry.objects.filter(question__in=options, question_set__day__in=days).order_by()
    columns = ("pk", "question", "question_set__day", "prices")
    entry_by_id = rows_by("pk", entries.values_list(*columns, named=True))
    rows = Forecast.objects.counted().filter(entry__in=entries.values("pk"), arm=arm).order_by("-pk")
    market_forecasts = {}
    for row in rows.values_list("entry", "release", "methodology", "probabilities", named=True):
        entry = entry_by_id[row.entry]
        for market, names in options[entry.question].items():
            key = (row.release, market, entry.question_set__day, row.methodology)
            market_forecasts[key] = MarketForecast(row.probabilities, entry.prices, names)
    return market_forecasts


def _forecast_bet(purchase: Purchase, market: Market, forecast: MarketForecast, at: datetime | None) -> ForecastBet:
    price = float(purchase.price)
    if purchase.outcome in forecast.names:
        name = forecast.names[purchase.outcome]
        probability, ask_key = float(forecast.probabilities[name]), "ask"
    else:  # the question has the market as one option, its YES
        (name,) = forecast.names.values()
        probability, ask_key = 1 - float(forecast.probabilities[name]), "no_ask"
    quoted = forecast.prices.get(name) or {}
    is_resolved = market.resolved_by(at)
    return ForecastBet(
        family=purchase.family,
        market=market.pk,
        event=market.event_key,
        probability=probability,
        confidence=purchase.implied_confidence or 0.0,
        price=price,
        ask=_ask(quoted.get(ask_key), price),
        amount=float(purchase.amount),
        won=purchase.outcome == market.winning_outcome_id if is_resolved else None,
        largest=float(purchase.largest),
    )


def _ask(text: str | None, otherwise: float) -> float:
    ask = float(text) if text is not None else otherwise
    return ask if 0 < ask < 1 else otherwise


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None
