"""A scripted venue for tests: Gamma, the CLOB and the model gateway on one real local HTTP server.

Tests set its markets (`market`, `move`, `close`, `resolve`) and the answers of models (`says`); the arena reaches it
only over HTTP, through the same settings as the real services.
"""

import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import takewhile
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.commands import run

SUNDAY = datetime(2026, 3, 8, tzinfo=UTC)
DECISION = SUNDAY + timedelta(minutes=5)
HOLD = {"action": "HOLD", "reasoning": "nothing to do"}
GPT, GEMINI, GROK = "openai/gpt-5.2", "google/gemini-3-pro-preview", "x-ai/grok-4.1-fast"
CLAUDE, DEEPSEEK = "anthropic/claude-opus-4.5", "deepseek/deepseek-v3.2"
KIMI, QWEN = "moonshotai/kimi-k2-thinking", "qwen/qwen3-235b-a22b-2507"


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
    """What a search showed."""


USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.001}
Script = Mapping[str, Any] | str | Failure | ModelAnswer | Callable[["Prompt"], Any]


@dataclass(frozen=True)
class Prompt:
    """A request to a model, its blocks read back the way a model would."""

    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def model(self) -> str:
        return self.body["model"]

    @property
    def user(self) -> str:
        return self.body["messages"][1]["content"]

    def block(self, heading: str) -> list[Any]:
        lines = self.user.split("\n")
        rows = takewhile(lambda line: line.startswith(("{", "[")), lines[lines.index(heading) + 1 :])
        return [json.loads(row) for row in rows]

    @property
    def portfolio(self) -> dict[str, Any]:
        return self.block("PORTFOLIO")[0]

    @property
    def positions(self) -> list[dict[str, Any]]:
        return self._table("POSITIONS")

    @property
    def markets(self) -> list[dict[str, Any]]:
        return self._table("MARKETS")

    @property
    def questions(self) -> list[dict[str, Any]]:
        return self._table("QUESTIONS")

    def _table(self, heading: str) -> list[dict[str, Any]]:
        header, *rows = self.block(heading)
        return [dict(zip(header, row, strict=True)) for row in rows]

    def market_id(self, question: str) -> str:
        return next(row["market_id"] for row in self.markets if row["question"] == question)


def bet(question: str, side: str, amount: Any, *more: tuple[str, str, Any]) -> Callable[[Prompt], Any]:
    """An answer that bets on markets named by their questions."""

    def answer(prompt: Prompt) -> Any:
        bets = [
            {"market_id": prompt.market_id(q), "side": s, "amount": a} for q, s, a in ((question, side, amount), *more)
        ]
        return {"action": "BET", "bets": bets, "reasoning": "because"}

    return answer


def forecast(vectors: Mapping[str, Mapping[str, Any]] | None = None, *, lean: float = 0.0) -> Callable[[Prompt], Any]:
    """An answer that states the probabilities given by question, else even ones with `lean` more for the first."""

    def answer(prompt: Prompt) -> Any:
        return {
            "forecasts": [_forecast_of(row, (vectors or {}).get(row["question"]), lean) for row in prompt.questions]
        }

    return answer


def _forecast_of(row: dict[str, Any], probabilities: Mapping[str, Any] | None, lean: float) -> dict[str, Any]:
    if probabilities is None:
        share = 1 / len(row["options"]) if row["exclusive"] else 0.5
        probabilities = dict.fromkeys(row["options"], share)
        first, last = row["options"][0], row["options"][-1]
        probabilities = probabilities | {first: share + lean, last: share - lean}
    return {"question_id": row["question_id"], "probabilities": probabilities, "rationale": "because"}


def sell(question: str, percentage: Any) -> Callable[[Prompt], Any]:
    """An answer that sells from the first position on a market named by its question."""

    def answer(prompt: Prompt) -> Any:
        position_row = next(row for row in prompt.positions if row["question"] == question)
        sells = [{"position_id": position_row["position_id"], "percentage": percentage}]
        return {"action": "SELL", "sells": sells, "reasoning": "because"}

    return answer


def take_over(fake: object, source: object) -> None:
    """Gives a fake service the state of another of its kind; each keeps its server."""
    state = {name: value for name, value in vars(source).items() if name != "server"}
    vars(fake).update(deepcopy(state))


class Venue:
    """The state behind the server: markets, prices and scripted answers. Tests may change every attribute."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.rows: dict[str, Any] = {}
        self.gone: set[str] = set()
        self.midpoints: dict[str, str | None] = {}
        self.books: dict[str, tuple[str | None, str | None]] = {}
        self.winners: dict[str, str] = {}
        self.scripts: dict[str, deque[Script]] = defaultdict(deque)
        self.asked: list[Prompt] = []
        self.requests: list[str] = []
        self.down: set[str] = set()
        self.bills: dict[str, Any] = {}
        """The gateway's records of a generation by its id, of the key, and of its account's credits."""
        for pattern, handler in (
            (r"^/gamma/markets/keyset$", self._catalogue),
            (r"^/gamma/markets/[^/]+$", self._market),
            (r"^/clob/midpoints$", self._midpoints),
            (r"^/clob/books$", self._books),
            (r"^/clob/markets/[^/]+$", self._clob_market),
            (r"^/gateway/chat/completions$", self._complete),
            (r"^/gateway/(generation|key|credits)$", self._bill),
        ):
            server.expect_request(re.compile(pattern)).respond_with_handler(self._logged(handler))

    def as_left(self, source: "Venue") -> "Venue":
        """Takes over the other one's markets, prices, scripts and recorded requests."""
        take_over(self, source)
        return self

    # markets and prices

    def market(self, question: str, prices: Mapping[str, str] | None = None, **raw: Any) -> dict[str, Any]:
        """Lists a market (Yes 0.40, No 0.60 unless told) and returns its raw row."""
        number = len(self.rows) + 1
        prices = prices or {"Yes": "0.40", "No": "0.60"}
        external_id = str(900 + number)
        tokens = [f"{external_id}{index:03d}" for index in range(len(prices))]
        row = {
            "id": external_id,
            "question": question,
            "conditionId": f"0x{number:064x}",
            "slug": f"market-{number}",
            "outcomes": json.dumps(list(prices)),
            "outcomePrices": json.dumps(list(prices.values())),
            "clobTokenIds": json.dumps(tokens),
            "volume": str(1_000_000 - number),
            "volumeNum": 1_000_000 - number,
            "endDate": "2026-06-30T00:00:00Z",
            "active": True,
            "closed": False,
            "acceptingOrders": True,
            "events": [{"id": f"e{number}", "title": question}],
        } | raw
        self.rows[external_id] = row
        for token, price in zip(tokens, prices.values(), strict=True):
            self.quote(token, price)
        return row

    def row(self, question: str) -> dict[str, Any]:
        return next(row for row in self.rows.values() if row["question"] == question)

    def tokens(self, question: str) -> list[str]:
        return json.loads(self.row(question)["clobTokenIds"])

    def quote(self, token: str, price: str | None) -> None:
        """Puts a midpoint with a tight two-sided book on a token, or takes both away."""
        self.midpoints[token] = price
        if price is None:
            self.books.pop(token, None)
        else:
            tick = Decimal("0.005")
            self.books[token] = (str(Decimal(price) - tick), str(Decimal(price) + tick))

    def move(self, question: str, **prices: str) -> None:
        """Moves both Gamma and the CLOB to new prices, outcome by outcome in their order."""
        row = self.row(question)
        row["outcomePrices"] = json.dumps(list(prices.values()))
        for token, price in zip(self.tokens(question), prices.values(), strict=True):
            self.quote(token, price)

    def close(self, question: str, *prices: str, status: str | None = None) -> None:
        """Closes a market at `prices` (default: as they stand) with an oracle's status."""
        row = self.row(question)
        row.update(closed=True, acceptingOrders=False, closedTime="2026-03-20 12:00:00+00")
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

    def says(self, model: str, *scripts: Script) -> None:
        """Queues answers of a model; once they are used up it holds."""
        self.scripts[model].extend(scripts)

    def everyone_holds(self) -> None:
        self.scripts.clear()

    def start_first_cohort(self) -> None:
        """Has the arena sync the markets and start cohort 1, Sunday midnight."""
        assert run("sync_markets", SUNDAY).code == 0
        assert run("start_cohort", SUNDAY)["cohort"] == 1

    # entry points

    def _logged(self, handler: Callable[[Request], Response]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            self.requests.append(f"{request.method} {request.path}")
            service = request.path.split("/")[1]
            is_down = service in self.down or request.path in self.down
            return Response("<html>down</html>", 503) if is_down else handler(request)

        return answer

    def _catalogue(self, request: Request) -> Response:
        closed, ids = request.args.get("closed") == "true", request.args.getlist("id")
        rows = [
            row
            for key, row in self.rows.items()
            if key not in self.gone
            and bool(isinstance(row, dict) and row.get("closed")) == closed
            and (not ids or key in ids)
        ]
        rows.sort(key=lambda row: -float((row.get("volumeNum") or 0) if isinstance(row, dict) else 0))
        start = int(request.args.get("after_cursor", "0"))
        page = {"markets": rows[start : start + 100]}
        if start + 100 < len(rows):
            page["next_cursor"] = str(start + 100)
        return _json(page)

    def _market(self, request: Request) -> Response:
        key = request.path.rsplit("/", 1)[1]
        if key in self.gone or key not in self.rows:
            return _json({"type": "not found error", "error": "id not found"}, 404)
        return _json(self.rows[key])

    def _midpoints(self, request: Request) -> Response:
        tokens = [item["token_id"] for item in request.get_json()]
        return _json({token: self.midpoints[token] for token in tokens if self.midpoints.get(token) is not None})

    def _books(self, request: Request) -> Response:
        books = []
        for item in request.get_json():
            bid, ask = self.books.get(item["token_id"], (None, None))
            levels = {"bids": bid, "asks": ask}
            books.append(
                {"asset_id": item["token_id"]}
                | {side: [{"price": price, "size": "10"}] if price else [] for side, price in levels.items()}
            )
        return _json(books)

    def _clob_market(self, request: Request) -> Response:
        condition = request.path.rsplit("/", 1)[1]
        row = next((row for row in self.rows.values() if row["conditionId"] == condition), None)
        if row is None:
            return _json({"error": "market not found"}, 404)
        names, tokens = json.loads(row["outcomes"]), json.loads(row["clobTokenIds"])
        won = self.winners.get(row["question"])
        flags = [
            {"token_id": token, "outcome": name, "price": int(name == won), "winner": name == won}
            for token, name in zip(tokens, names, strict=True)
        ]
        return _json({"condition_id": condition, "tokens": flags})

    def _complete(self, request: Request) -> Response:
        prompt = Prompt(request.get_json(), dict(request.headers))
        self.asked.append(prompt)
        queue = self.scripts[prompt.model]
        answer: Any = queue.popleft() if queue else forecast() if "\nQUESTIONS\n" in prompt.user else HOLD
        if callable(answer) and not isinstance(answer, Response):  # which is callable too
            answer = answer(prompt)
        if isinstance(answer, Failure):
            body = answer.body or {"error": {"code": answer.status, "message": f"scripted {answer.status}"}}
            return _json(body, answer.status, answer.headers)
        if isinstance(answer, Response):
            return answer
        if not isinstance(answer, ModelAnswer):
            answer = ModelAnswer(answer if isinstance(answer, str) else json.dumps(answer))
        message = {"role": "assistant", "content": answer.content, "refusal": answer.refusal}
        if answer.annotations != ():
            message["annotations"] = answer.annotations
        return _json(
            {
                "id": f"gen-{len(self.asked)}",
                "model": answer.returned_model or prompt.model,
                "provider": answer.provider,
                "quantization": answer.quantization,
                "choices": [{"index": 0, "finish_reason": answer.finish_reason, "message": message}],
                "usage": USAGE if answer.usage is None else answer.usage,
            }
        )

    def _bill(self, request: Request) -> Response:
        data = self.bills.get(request.args.get("id") or request.path.rpartition("/")[2])
        return _json({"data": data}) if data else _json({"error": {"code": 404, "message": "not found"}}, 404)


def _json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json.dumps(body), status, headers, content_type="application/json")
