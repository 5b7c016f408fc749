"""The script over HTTP: listing, moving and resolving markets, answers of models, outages."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from venue_sandbox.catalogue import Market, ResolutionKind
from venue_sandbox.exchange import Exchange
from venue_sandbox.gamma import Gamma, invalid
from venue_sandbox.http_messages import Reply, Request
from venue_sandbox.kalshi import Kalshi
from venue_sandbox.script import Script


class Controls:
    """The endpoints of the script, one method each. A market is named by its id, at Kalshi by its ticker."""

    def __init__(self, script: Script, gamma: Gamma, kalshi: Kalshi):
        self.script = script
        self.gamma = gamma
        self.kalshi = kalshi

    def list_market(self, request: Request) -> Reply:
        """Lists a market of Polymarket, `{"question": …, "prices": {"Yes": "0.40", "No": "0.60"}}`."""
        body = _fields(request, question=str, prices=dict)
        for price in body["prices"].values():
            _price(price)
        return Reply(200, self.script.market(body["question"], body["prices"]))

    def say(self, request: Request) -> Reply:
        """Queues answers of a model, `{"model": id, "answers": [text or object, …]}`."""
        body = _fields(request, model=str, answers=list)
        self.script.says(body["model"], *body["answers"])
        return Reply(200, {"model": body["model"], "queued": len(self.script.answers[body["model"]])})

    def move(self, request: Request) -> Reply:
        """Sets the price of every outcome of an open market, `{"market": id, "prices": ["0.70", "0.30"]}`."""
        body = _fields(request, market=str, prices=list)
        prices = tuple(map(_price, body["prices"]))
        if row := self.script.rows.get(body["market"]):
            outcomes = json.loads(row["outcomes"])
            _check_length(prices, outcomes)
            self.script.move(row["question"], **dict(zip(outcomes, map(str, prices), strict=True)))
        else:
            exchange, market = self._find(body["market"])
            _check_length(prices, market.outcomes)
            exchange.moved[market.id] = prices
        return self._row(request, body["market"])

    def resolve(self, request: Request) -> Reply:
        """Resolves a market at once, `{"market": id, "winner": 0}`, though its time has not come."""
        body = _fields(request, market=str, winner=int)
        winner = body["winner"]
        if row := self.script.rows.get(body["market"]):
            outcomes = json.loads(row["outcomes"])
            if row["closed"] or not 0 <= winner < len(outcomes):
                raise invalid(f"market {row['id']} is not open or has no such outcome")
            self.script.resolve(row["question"], outcomes[winner])
        else:
            exchange, market = self._find(body["market"])
            plain_one = market.resolution is ResolutionKind.PLAIN and market.version == "v1"
            is_open = exchange.market_state(market, request.at).open
            if not (plain_one and is_open and 0 <= winner < len(market.outcomes)):
                raise invalid(f"market {market.id} is not open, has no such outcome, or resolves in a way of its own")
            exchange.early[market.id] = (request.at, winner)
        return self._row(request, body["market"])

    def set_outages(self, request: Request) -> Reply:
        """Sets what is down and which markets are gone, `{"down": ["gamma", "/clob/books"], "gone": [id, …]}`."""
        body = _fields(request, down=list, gone=list)
        self.script.down, self.script.gone = set(body["down"]), set(body["gone"])
        return Reply(200, body)

    def _find(self, name: str) -> tuple[Exchange, Market]:
        for exchange in (self.gamma.exchange, self.kalshi.exchange):
            if name in exchange.by_id:
                return exchange, exchange.by_id[name]
        raise invalid(f"there is no market {name}")

    def _row(self, request: Request, name: str) -> Reply:
        if name in self.kalshi.exchange.by_id:
            return self.kalshi.market(request, None, name)
        return self.gamma.market(request, name)


def _fields(request: Request, **types: Callable[[Any], Any]) -> dict[str, Any]:
    """The fields of the body. Raises Refusal with 422 for one that is missing or of another type."""
    try:
        body = request.json()
        return {name: convert(body[name]) for name, convert in types.items()}
    except (ValueError, TypeError, KeyError):
        raise invalid(f"expected an object with {', '.join(types)}") from None


def _price(text: Any) -> Decimal:
    try:
        price = Decimal(str(text))
    except ArithmeticError:
        price = Decimal("NaN")
    if not (price.is_finite() and 0 < price < 1):
        raise invalid("prices: expected numbers between 0 and 1")
    return price


def _check_length(prices: tuple[Decimal, ...], outcomes: tuple[str, ...]) -> None:
    if len(prices) != len(outcomes):
        raise invalid(f"prices: expected {len(outcomes)}")
