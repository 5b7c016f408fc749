"""The sandbox's CLOB API: midpoints, order books and winner flags of the simulated exchange."""

from decimal import Decimal
from hashlib import sha256
from typing import Any

from venue_sandbox.catalogue import ResolutionKind
from venue_sandbox.exchange import Book, Exchange, Stage
from venue_sandbox.http_messages import Refusal, Reply, Request, plain

BATCH_CAP = 500


class Clob:
    """The endpoints of the CLOB, one method each."""

    def __init__(self, exchange: Exchange):
        self.exchange = exchange

    def midpoints(self, request: Request) -> Reply:
        return Reply(200, {book.token: plain(book.mid) for book in self._books(request)})

    def books(self, request: Request) -> Reply:
        return Reply(200, [_book(book) for book in self._books(request)])

    def market(self, request: Request, condition_id: str) -> Reply:
        market = self.exchange.by_condition.get(condition_id)
        if market is None or not self.exchange.is_listed(market, request.at):
            return Reply(404, {"error": "market not found"})
        state = self.exchange.market_state(market, request.at)
        tokens = [
            {"token_id": token, "outcome": outcome, "price": price, "winner": state.winner == i}
            for i, (token, outcome, price) in enumerate(zip(market.tokens, market.outcomes, state.prices, strict=True))
        ]
        body = {
            "enable_order_book": state.open,
            "active": True,
            "closed": not state.open,
            "archived": False,
            "accepting_orders": state.open,
            "minimum_order_size": 5,
            "minimum_tick_size": market.tick,
            "condition_id": market.condition_id,
            "question_id": market.question_id,
            "question": market.question,
            "market_slug": market.slug,
            "end_date_iso": f"{market.closes:%Y-%m-%d}T00:00:00Z",
            "game_start_time": None,
            "seconds_delay": 0,
            "neg_risk": market.runner is not None,
            "is_50_50_outcome": market.resolution is ResolutionKind.EVEN and state.stage is Stage.RESOLVED,
            "tokens": tokens,
        }
        return Reply(200, body)

    def _books(self, request: Request) -> list[Book]:
        """The books of the tokens in the body; a token without one is left out."""
        try:
            tokens = [entry["token_id"] for entry in request.json()]
        except (ValueError, TypeError, KeyError):
            raise Refusal(Reply(400, {"error": "Invalid payload"})) from None
        if len(tokens) > BATCH_CAP:
            raise Refusal(Reply(400, {"error": "Payload exceeds the limit"}))
        books = (self.exchange.book(str(token), request.at) for token in tokens)
        return [book for book in books if book is not None]


def _book(book: Book) -> dict[str, Any]:
    return {
        "market": book.market.condition_id,
        "asset_id": book.token,
        "timestamp": str(int(book.at.timestamp() * 1000)),
        "hash": sha256(f"{book.token}/{book.at}".encode()).hexdigest()[:40],
        "bids": _levels(book.bids),
        "asks": _levels(book.asks),
        "min_order_size": "5",
        "tick_size": plain(book.tick),
        "neg_risk": book.market.runner is not None,
        "last_trade_price": plain(book.mid),
    }


def _levels(levels: tuple[tuple[Decimal, Decimal], ...]) -> list[dict[str, str]]:
    return [{"price": plain(price), "size": plain(size)} for price, size in levels]
