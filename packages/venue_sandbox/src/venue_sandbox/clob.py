"""The sandbox's CLOB API: midpoints, order books and winner flags of the simulated exchange and of the script."""

import json
from decimal import Decimal
from hashlib import sha256

from venue_sandbox import rows
from venue_sandbox.catalogue import ResolutionKind
from venue_sandbox.exchange import Book, Exchange, Stage
from venue_sandbox.http_messages import Refusal, Reply, Request, plain
from venue_sandbox.script import Script

BATCH_CAP = 500
SIZE = "10"
"""Of the one level on each side of a book by hand."""


class Clob:
    """The endpoints of the CLOB, one method each."""

    def __init__(self, exchange: Exchange, script: Script):
        self.exchange = exchange
        self.script = script

    def midpoints(self, request: Request) -> Reply:
        tokens, midpoints = _tokens(request), self.script.midpoints
        by_hand = {token: midpoints[token] for token in tokens if midpoints.get(token) is not None}
        return Reply(200, by_hand | {book.token: plain(book.mid) for book in self._books(request, tokens)})

    def books(self, request: Request) -> Reply:
        tokens, script = _tokens(request), self.script
        by_hand = [
            _book_by_hand(token, *script.books.get(token, (None, None)))
            for token in tokens
            if token in script.books or token in script.midpoints
        ]
        return Reply(200, by_hand + [_book(book) for book in self._books(request, tokens)])

    def market(self, request: Request, condition_id: str) -> Reply:
        for row in self.script.rows.values():
            if isinstance(row, dict) and row.get("conditionId") == condition_id:
                return Reply(200, self._market_by_hand(row))
        market = self.exchange.by_condition.get(condition_id)
        if market is None or not self.exchange.is_listed(market, request.at):
            return Reply(404, {"error": "market not found"})
        state = self.exchange.market_state(market, request.at)
        flags = [i == state.winner for i in range(len(market.outcomes))]
        body = rows.clob_market(condition_id, zip(market.tokens, market.outcomes, state.prices, flags, strict=True)) | {
            "enable_order_book": state.open,
            "active": True,
            "closed": not state.open,
            "archived": False,
            "accepting_orders": state.open,
            "minimum_order_size": 5,
            "minimum_tick_size": market.tick,
            "question_id": market.question_id,
            "question": market.question,
            "market_slug": market.slug,
            "end_date_iso": f"{market.closes:%Y-%m-%d}T00:00:00Z",
            "game_start_time": None,
            "seconds_delay": 0,
            "neg_risk": market.runner is not None,
            "is_50_50_outcome": market.resolution is ResolutionKind.EVEN and state.stage is Stage.RESOLVED,
        }
        return Reply(200, body)

    def _books(self, request: Request, tokens: list[str]) -> list[Book]:
        """The season's books of the tokens; a token without one is left out."""
        books = (self.exchange.book(token, request.at) for token in tokens)
        return [book for book in books if book is not None]

    def _market_by_hand(self, row: rows.Row) -> rows.Row:
        names, tokens = json.loads(row["outcomes"]), json.loads(row["clobTokenIds"])
        flags = [name == self.script.winners.get(row["question"]) for name in names]
        return rows.clob_market(row["conditionId"], zip(tokens, names, map(int, flags), flags, strict=True))


def _tokens(request: Request) -> list[str]:
    """The tokens in the body. Raises Refusal with 400 for an invalid one."""
    try:
        tokens = [str(entry["token_id"]) for entry in request.json()]
    except (ValueError, TypeError, KeyError):
        raise Refusal(Reply(400, {"error": "Invalid payload"})) from None
    if len(tokens) > BATCH_CAP:
        raise Refusal(Reply(400, {"error": "Payload exceeds the limit"}))
    return tokens


def _book_by_hand(token: str, bid: str | None, ask: str | None) -> rows.Row:
    return rows.book(token, [(bid, SIZE)] if bid else [], [(ask, SIZE)] if ask else [])


def _book(book: Book) -> rows.Row:
    return rows.book(book.token, _levels(book.bids), _levels(book.asks)) | {
        "market": book.market.condition_id,
        "timestamp": str(int(book.at.timestamp() * 1000)),
        "hash": sha256(f"{book.token}/{book.at}".encode()).hexdigest()[:40],
        "min_order_size": "5",
        "tick_size": plain(book.tick),
        "neg_risk": book.market.runner is not None,
        "last_trade_price": plain(book.mid),
    }


def _levels(levels: tuple[tuple[Decimal, Decimal], ...]) -> list[tuple[str, str]]:
    return [(plain(price), plain(size)) for price, size in levels]
