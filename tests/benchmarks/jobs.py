"""How long does it take to settle? `uv run python -m tests.benchmarks.settle --database URL`.

Resolves markets with open positions on a copy of a made arena (`generate` fills one), at a local server that speaks
Gamma's format, and prints what `check_resolutions` took with its scores and leaderboards, and what a snapshot pass and
`compute_scores` take after it. The database is changed: name a copy.
"""

import argparse
import cProfile
import json
import os
import pstats
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.benchmarks.environment import set_up_production

SLOWEST = 45
"""Functions that a profile names."""


class Gamma(BaseHTTPRequestHandler):
    """Answers look-ups of single markets, every list with an empty one, and requests for midpoints with them."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet a response: a second one would wait for the receipt of the first
    rows: dict[str, dict[str, Any]] = {}
    midpoints: dict[str, str] = {}

    def do_GET(self) -> None:
        row = self.rows.get(self.path.partition("?")[0].rpartition("/")[2])
        self._answer(row if row else {"markets": []})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tokens = [row["token_id"] for row in asked]
        books = [{"asset_id": token, "bids": [], "asks": []} for token in tokens]
        is_book = self.path.startswith("/books")
        self._answer(
            books if is_book else {token: self.midpoints[token] for token in tokens if token in self.midpoints}
        )

    def _answer(self, contents: Any) -> None:
        body = json.dumps(contents).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """No line for each request."""


def resolved_rows(number: int) -> dict[str, dict[str, Any]]:
    """Gamma's rows of all unsettled markets; `number` of those that few agents hold resolve for their first side."""
    from django.db.models import Count

    from agents.models import Position
    from markets.models import Market

    holders = Position.objects.open().order_by().values("market").annotate(number=Count("pk"))
    held = set(holders.order_by("number", "market").values_list("market", flat=True)[:number])
    rows = {}
    for market in Market.objects.unsettled().filter(source="polymarket").prefetch_related("outcomes"):
        outcomes = list(market.outcomes.all())
        final = market.pk in held
        prices = [str(1 if index == 0 else 0) if final else str(o.price or 0) for index, o in enumerate(outcomes)]
        rows[market.external_id] = {
            "id": market.external_id,
            "question": market.question,
            "conditionId": market.condition_id,
            "slug": market.slug,
            "outcomes": json.dumps([outcome.name for outcome in outcomes]),
            "outcomePrices": json.dumps(prices),
            "clobTokenIds": json.dumps([outcome.token_id for outcome in outcomes]),
            "volumeNum": float(market.volume or 0),
            "active": True,
            "closed": final,
            "acceptingOrders": not final,
            "events": [{"id": market.event_id, "title": market.event_title}],
        } | ({"umaResolutionStatus": "resolved"} if final else {})
    return rows


def timed(name: str, call: Callable[[], object], *, profile: bool) -> None:
    profiler = cProfile.Profile() if profile else None
    processor, wall = time.process_time(), time.perf_counter()
    if profiler:
        profiler.enable()
    call()
    if profiler:
        profiler.disable()
    print(f"{name:40} {time.process_time() - processor:7.2f} s processor {time.perf_counter() - wall:7.2f} s wall")
    if profiler:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(SLOWEST)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", required=True)
    parser.add_argument("--markets", type=int, default=200)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Gamma)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ |= {f"{name}_BASE_URL": f"http://127.0.0.1:{server.server_port}" for name in ("GAMMA", "CLOB")}
    set_up_production(options.database)
    from django.core.management import call_command
    from django.db.models import Max

    from agents.models import Settlement
    from markets.models import Outcome
    from scoring.models import Snapshot

    at = Snapshot.objects.aggregate(last=Max("taken_at"))["last"] + timedelta(minutes=10)
    Gamma.rows = resolved_rows(options.markets)
    Gamma.midpoints = {o.token_id: str(o.price) for o in Outcome.objects.exclude(price=None).exclude(token_id="")}
    settled = Settlement.objects.count()
    print(f"{len(Gamma.rows)} markets to look up, {options.markets} of them resolved")
    steps = ("take_snapshots", "check_resolutions", "take_snapshots", "compute_scores", "compute_scores")
    for index, name in enumerate(steps):
        now = at + index * timedelta(minutes=10)
        timed(name, lambda name=name, now=now: call_command(name, at=now, json=True), profile=options.profile)
    print(f"{Settlement.objects.count() - settled} positions settled")


if __name__ == "__main__":
    main()
