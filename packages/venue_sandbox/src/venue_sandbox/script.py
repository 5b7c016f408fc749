"""The part of the sandbox's world that a client writes: markets by hand, answers of models, bills, outages.

It stands beside the season, or alone in an empty one (`Sandbox(empty=True)`); its rows may be bent in any way, because
services are. What it holds is answered at once, whatever the clock says.
"""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from venue_sandbox import rows
from venue_sandbox.http_messages import Reply, Request
from venue_sandbox.prompt import ModelRequest

HALF_SPREAD = Decimal("0.005")
"""Between the midpoint and either side of a book that `quote` makes."""
DEFAULT_ENDS = "2026-06-30T00:00:00Z"
CLOSED_AT = "2026-03-20 12:00:00+00"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.001}


@dataclass(frozen=True)
class Failure:
    """An HTTP error of the gateway."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelAnswer:
    """A completion with fields besides its text."""

    content: Any
    returned_model: str | None = None
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: Any = None
    provider: str | None = "Scripted"
    quantization: str | None = None
    annotations: Any = ()
    """The pages that a search showed."""


Answer = Mapping[str, Any] | str | Failure | ModelAnswer | Reply | Callable[[ModelRequest], Any]
"""A text, a JSON object, an error, or a function of the request that gives one of them."""


class Outages:
    """Services (`gamma`), paths (`/clob/books`) and parameters (`/clob/books?x`) that answer 503 or 400."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.refused: set[str] = set()

    def reply(self, request: Request) -> Reply | None:
        """The error that a request meets, None for one that is answered."""
        if not self.down and not self.refused:
            return None
        names = {request.path.split("/")[1], request.path, *(f"{request.path}?{name}" for name in request.query)}
        if names & self.refused:
            return Reply(400, {"error": {"code": "bad_request"}})
        return Reply(503, "<html>down</html>") if names & self.down else None


class Script(Outages):
    """Polymarket's markets by hand, and the answers of models. Every attribute may be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: dict[str, Any] = {}
        self.gone: set[str] = set()
        """Ids of markets, the season's too, that no endpoint of Gamma knows."""
        self.midpoints: dict[str, str | None] = {}
        self.books: dict[str, tuple[str | None, str | None]] = {}
        """The best bid and ask of each token."""
        self.winners: dict[str, str] = {}
        """The outcome that the CLOB flags as the winner, by question."""
        self.answers: defaultdict[str, deque[Answer]] = defaultdict(deque)
        self.default_answer: Callable[[ModelRequest], Any] | None = None
        """The answer of a model without any left in `answers`; without it, the persona's."""
        self.asked: list[ModelRequest] = []
        """The requests that were answered by the script."""
        self.bills: dict[str, Any] | None = None
        """The gateway's records of generations by id, of the `key` and of `credits`, in place of its own."""

    # markets and prices

    def market(self, question: str, prices: Mapping[str, str] | None = None, **raw: Any) -> rows.Row:
        """Lists a market (Yes 0.40, No 0.60 unless told) and returns its row."""
        number = len(self.rows) + 1
        prices = prices or {"Yes": "0.40", "No": "0.60"}
        external_id = str(900 + number)
        tokens = [f"{external_id}{index:03d}" for index in range(len(prices))]
        row = rows.gamma_market(
            id=external_id,
            question=question,
            condition_id=f"0x{number:064x}",
            slug=f"market-{number}",
            prices=prices,
            tokens=tokens,
            volume=Decimal(1_000_000 - number),
            is_open=True,
        )
        row |= {"endDate": DEFAULT_ENDS, "events": [{"id": f"e{number}", "title": question}]} | raw
        self.rows[external_id] = row
        for token, price in zip(tokens, prices.values(), strict=True):
            self.quote(token, price)
        return row

    def listed(self) -> Iterator[tuple[str, Any]]:
        """The id and the row of each market that is not gone."""
        return ((key, row) for key, row in self.rows.items() if key not in self.gone)

    def row(self, question: str) -> rows.Row:
        """The row of a question. Raises StopIteration where there is none."""
        return next(row for row in self.rows.values() if row["question"] == question)

    def tokens(self, question: str) -> list[str]:
        tokens: list[str] = json.loads(self.row(question)["clobTokenIds"])
        return tokens

    def quote(self, token: str, price: str | None) -> None:
        """Puts a midpoint with a tight two-sided book on a token, or takes both away."""
        self.midpoints[token] = price
        if price is None:
            self.books.pop(token, None)
        else:
            self.books[token] = (str(Decimal(price) - HALF_SPREAD), str(Decimal(price) + HALF_SPREAD))

    def move(self, question: str, **prices: str) -> None:
        """Moves both Gamma and the CLOB to new prices, outcome by outcome in their order."""
        self.row(question)["outcomePrices"] = json.dumps(list(prices.values()))
        for token, price in zip(self.tokens(question), prices.values(), strict=True):
            self.quote(token, price)

    def close(self, question: str, *prices: str, status: str | None = None) -> None:
        """Closes a market at `prices` (default: as they stand) with an oracle's status."""
        row = self.row(question)
        row.update(closed=True, acceptingOrders=False, closedTime=CLOSED_AT)
        if prices:
            row["outcomePrices"] = json.dumps(list(prices))
        if status:
            row["umaResolutionStatus"] = status
        for token in self.tokens(question):
            self.quote(token, None)

    def resolve(self, question: str, winner: str) -> None:
        names = json.loads(self.row(question)["outcomes"])
        self.close(question, *("1" if name == winner else "0" for name in names), status="resolved")

    def cancel(self, question: str) -> None:
        names = json.loads(self.row(question)["outcomes"])
        self.close(question, *([str(Decimal(1) / len(names))] * len(names)), status="resolved")

    # answers of models

    def says(self, model: str, *answers: Answer) -> None:
        """Queues answers of a model."""
        self.answers[model].extend(answers)

    def answer(self, request: ModelRequest) -> Any:
        """The next answer of the model that is asked, None where the script has none."""
        queue = self.answers.get(request.model)
        if not queue and self.default_answer is None:
            return None
        self.asked.append(request)
        answer: Any = queue.popleft() if queue else self.default_answer
        return answer(request) if callable(answer) else answer


class KalshiScript(Outages):
    """Kalshi's events and markets by hand. Every attribute may be changed."""

    def __init__(self) -> None:
        super().__init__()
        self.events: dict[str, rows.Row] = {}
        """By ticker; `updated`, seconds since 1970, is when the event last changed (without it: just now)."""
        self.markets: dict[str, rows.Row] = {}
        self.historical: dict[str, rows.Row] = {}
        """Markets that the historical tier alone knows."""
        self.page_cap: int | None = None
        """Events on a page at most."""

    def event(self, title: str, *options: str, exclusive: bool = True, volume: int = 1000) -> list[rows.Row]:
        """Lists an event with a market for each option (one of its own without any) and returns their rows."""
        ticker = f"KX{len(self.events) + 1}"
        self.events[ticker] = rows.kalshi_event(ticker, title, "Politics", exclusive=exclusive)
        markets = [
            rows.kalshi_market(
                ticker=f"{ticker}-{place}",
                event_ticker=ticker,
                title=title,
                label=option,
                status="active",
                closes="2026-06-30T03:59:00Z",
                volume=Decimal(volume),
            )
            for place, option in enumerate(options or ("Yes",))
        ]
        for row in markets:
            self.quote(row, "0.3900", "0.4100", "0.4000")
        self.markets |= {row["ticker"]: row for row in markets}
        return markets

    def quote(self, row: rows.Row, bid: str, ask: str, trade: str = "0.0000") -> None:
        row.update(yes_bid_dollars=bid, yes_ask_dollars=ask, last_price_dollars=trade)

    def end(self, markets: Iterable[rows.Row], status: str, result: str = "", pays: str | None = None) -> None:
        """Moves markets to a status past their close, without any quote left."""
        for row in markets:
            row.update(status=status, result=result, yes_bid_dollars="0.0000", yes_ask_dollars="1.0000")
            if pays is not None:
                row["settlement_value_dollars"] = pays

    def events_since(self, seconds: float, statuses: tuple[str, ...] | None) -> list[rows.Row]:
        """The events that changed since then and have a market in one of these statuses, with all their markets."""
        by_event: dict[str, list[rows.Row]] = {ticker: [] for ticker in self.events}
        for row in self.markets.values():
            by_event[row["event_ticker"]].append(row)
        return [
            event | {"markets": by_event[ticker]}
            for ticker, event in self.events.items()
            if event.get("updated", seconds) >= seconds
            and any(statuses is None or row["status"] in statuses for row in by_event[ticker])
        ]
