"""A scripted Kalshi for tests, beside `tests.venue` on the same local server."""

import json
import re
from collections.abc import Iterable
from typing import Any

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response


class Kalshi:
    """The second venue. Everything is public and may be bent by a test."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.events: dict[str, dict[str, Any]] = {}
        self.markets: dict[str, dict[str, Any]] = {}
        self.gone: set[str] = set()
        self.down = self.dies_midway = self.unfiltered = False
        self.page = 2
        self.requests: list[str] = []
        self.sent = 0
        """Bytes of all pages."""
        self.historical: dict[str, dict[str, Any]] = {}
        server.expect_request("/kalshi/markets").respond_with_handler(self._markets)
        server.expect_request(re.compile(r"^/kalshi/historical/markets/[^/]+$")).respond_with_handler(self._settled)
        server.expect_request("/kalshi/events").respond_with_handler(self._catalogue)
        server.expect_request(re.compile(r"^/kalshi/markets/[^/]+$")).respond_with_handler(self._market)

    def event(self, title: str, *options: str, exclusive: bool = True, volume: int = 1000) -> list[dict[str, Any]]:
        """Lists an event with a market for each option (one of its own without any) and returns their raw rows."""
        ticker = f"KX{len(self.events) + 1}"
        self.events[ticker] = {
            "event_ticker": ticker,
            "title": title,
            "category": "Politics",
            "mutually_exclusive": exclusive,
        }
        rows = [
            {
                "ticker": f"{ticker}-{place}",
                "event_ticker": ticker,
                "title": title,
                "yes_sub_title": option,
                "status": "active",
                "result": "",
                "close_time": "2026-06-30T03:59:00Z",
                "yes_bid_dollars": "0.3900",
                "yes_ask_dollars": "0.4100",
                "last_price_dollars": "0.4000",
                "volume_fp": f"{volume}.00",
            }
            for place, option in enumerate(options or ("Yes",))
        ]
        self.markets |= {row["ticker"]: row for row in rows}
        return rows

    def quote(self, row: dict[str, Any], bid: str, ask: str, trade: str = "0.0000") -> None:
        row.update(yes_bid_dollars=bid, yes_ask_dollars=ask, last_price_dollars=trade)

    def end(self, rows: Iterable[dict[str, Any]], status: str, result: str = "", pays: str | None = None) -> None:
        """Moves markets to a status past their close, without any quote left."""
        for row in rows:
            row.update(status=status, result=result, yes_bid_dollars="0.0000", yes_ask_dollars="1.0000")
            if pays is not None:
                row["settlement_value_dollars"] = pays

    def _catalogue(self, request: Request) -> Response:
        self.requests.append(request.path)
        if self.down or (self.dies_midway and "cursor" in request.args):
            return Response('{"error":"too many requests"}', 503)
        if self.unfiltered and "min_updated_ts" in request.args:
            return Response('{"error":{"code":"bad_request"}}', 400)
        by_event: dict[str, list[dict[str, Any]]] = {ticker: [] for ticker in self.events}
        for row in self.markets.values():
            by_event[row["event_ticker"]].append(row)
        since = int(request.args.get("min_updated_ts", "0"))
        listed = [
            event | {"markets": by_event[ticker]}
            for ticker, event in self.events.items()
            if event.get("updated", since) >= since and any(row["status"] == "active" for row in by_event[ticker])
        ]
        start, size = int(request.args.get("cursor", "0")), min(self.page, int(request.args["limit"]))
        cursor = str(start + size) if start + size < len(listed) else ""
        return self._sent({"events": listed[start : start + size], "cursor": cursor})

    def _sent(self, answer: dict[str, Any]) -> Response:
        body = json.dumps(answer)
        self.sent += len(body)
        return Response(body)

    def _markets(self, request: Request) -> Response:
        self.requests.append(request.path)
        if self.down:
            return Response("<html>down</html>", 503)
        rows = [self.markets[ticker] for ticker in request.args["tickers"].split(",") if ticker in self.markets]
        return self._sent({"markets": rows, "cursor": ""})

    def _settled(self, request: Request) -> Response:
        self.requests.append(request.path)
        row = self.historical.get(request.path.rsplit("/", 1)[1])
        return Response(json.dumps({"market": row} if row else {"error": "not found"}), 200 if row else 404)

    def _market(self, request: Request) -> Response:
        self.requests.append(request.path)
        ticker = request.path.rsplit("/", 1)[1]
        if self.down:
            return Response("<html>down</html>", 503)
        if ticker in self.gone or ticker not in self.markets:
            return Response('{"error":{"code":"not_found"}}', 404)
        return Response(json.dumps({"market": self.markets[ticker]}))
