"""Measures each job on a large arena: `uv run python -m tests.benchmarks.jobs --database URL`.

On a made arena (`generate` fills one), at a local server that speaks the venue's formats: a snapshot pass, the
settlement of markets with open positions, scores after one market and scores from nothing. Everything happens in one
transaction that is rolled back. Processor times are those of this process and of its PostgreSQL session, if that runs
on this machine; `!` marks what misses its bar, which is the goal set for an arena of that size.
"""

import argparse
import cProfile
import json
import multiprocessing
import os
import pstats
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from multiprocessing.connection import Connection
from typing import Any
from urllib.parse import parse_qs

import httpx

from tests.benchmarks.environment import set_up_production

SLOWEST = 60
"""Functions that a profile names."""
LARGE = 3_000_000
"""Snapshots from which the bars of ten times the usual arena hold."""
BARS_S = {
    "take_snapshots": (0.2, 1.5),
    "settle": (2.0, None),
    "scores of one market": (1.0, 1.0),
    "scores from nothing": (None, 10.0),
}
"""Seconds at 604,800 snapshots and at ten times as many."""


class Venue(BaseHTTPRequestHandler):
    """Answers look-ups of markets by their ids, every other list with an empty one, and requests for midpoints.

    PUT replaces the markets (`/markets`, by id) or the midpoints (`/midpoints`, by token).
    """

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # one packet a response: a second one would wait for the receipt of the first
    stored_rows: dict[str, dict[str, Any]] = {"markets": {}, "midpoints": {}}

    def do_PUT(self) -> None:
        self.stored_rows[self.path[1:]] = self._body()
        self._answer({})

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        parameters, markets = parse_qs(query), self.stored_rows["markets"]
        closed = parameters.get("closed") == ["true"]
        listed = [row for key in parameters.get("id", []) if (row := markets.get(key)) and row["closed"] is closed]
        self._answer(markets.get(path.rpartition("/")[2]) or {"markets": listed})

    def do_POST(self) -> None:
        tokens, midpoints = [row["token_id"] for row in self._body()], self.stored_rows["midpoints"]
        books = [{"asset_id": token, "bids": [], "asks": []} for token in tokens]
        is_book = self.path.startswith("/books")
        self._answer(books if is_book else {token: midpoints[token] for token in tokens if token in midpoints})

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _answer(self, contents: Any) -> None:
        body = json.dumps(contents).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """No line for each request."""


def serve_venue(port: "Connection[Any, Any]") -> None:
    """Serves a venue in this process and sends its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Venue)
    port.send(server.server_port)
    server.serve_forever()


@contextmanager
def running_venue() -> Iterator[str]:
    """The address of a venue in a process of its own: its work is none of the jobs'."""
    spawn = multiprocessing.get_context("spawn")
    receiver, sender = spawn.Pipe()
    process = spawn.Process(target=serve_venue, args=(sender,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{receiver.recv()}"
    finally:
        process.terminate()


def venue_rows(resolved: set[int]) -> dict[str, dict[str, Any]]:
    """Gamma's rows of all unsettled markets; those of these ids resolve for their first side."""
    from markets.models import Market

    rows = {}
    for market in Market.objects.unsettled().filter(source="polymarket").prefetch_related("outcomes"):
        outcomes = list(market.outcomes.all())
        final = market.pk in resolved
        prices = [
            str(1 if index == 0 else 0) if final else str(side_outcome.price or 0)
            for index, side_outcome in enumerate(outcomes)
        ]
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


def chosen_markets(markets: int, positions: int) -> list[int]:
    """Ids of so many unsettled markets with about so many open positions in all; the first one has the fewest."""
    from django.db.models import Count

    from agents.models import Position
    from markets.models import Market

    holders = Position.objects.open().order_by().values("market").annotate(number=Count("pk"))
    rows, total = [], 0
    for market, number in holders.order_by("number", "market").values_list("market", "number")[:markets]:
        rows.append(market)
        total += number
        if total >= positions:
            break
    followed = Market.objects.unsettled().filter(has_questions=True).exclude(positions__status=Position.Status.OPEN)
    return rows + list(followed.order_by("pk").values_list("pk", flat=True)[: markets - len(rows)])


def session_processor_s() -> float:
    """Processor seconds of our PostgreSQL session so far; 0 on SQLite, and where the server is elsewhere."""
    from django.db import connection

    if connection.vendor != "postgresql":
        return 0.0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    try:
        with open(f"/proc/{pid}/stat") as file:
            name, _, figures = file.read().partition(") ")
    except OSError:
        return 0.0
    if not name.endswith("(postgres"):
        return 0.0
    user, system = figures.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """Times steps, prints a line for each, and counts the missed bars."""

    def __init__(self, *, large: bool, profile: bool) -> None:
        self.large, self.profile, self.missed = large, profile, 0

    def time(self, name: str, call: Callable[[], object], *, bar: str = "") -> None:
        profiler = cProfile.Profile() if self.profile else None
        session, processor_s, wall = session_processor_s(), time.process_time(), time.perf_counter()
        if profiler:
            profiler.enable()
        call()
        if profiler:
            profiler.disable()
        wall, processor_s = time.perf_counter() - wall, time.process_time() - processor_s
        session = session_processor_s() - session
        limit = BARS_S[bar][self.large] if bar else None
        slow = limit is not None and wall > limit
        self.missed += slow
        bar_text = "" if limit is None else f"{limit:.1f}"
        print(
            f"{'!' if slow else ' '} {name:44}{bar_text:>6}{wall:8.2f} s wall{processor_s + session:8.2f} s processor"
            f" ({processor_s:.2f} here, {session:.2f} in the database)",
            flush=True,
        )
        if profiler:
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(SLOWEST)


@contextmanager
def rolled_back() -> Iterator[None]:
    from django.db import transaction

    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def measure(venue: str, markets: int, positions: int, *, profile: bool) -> int:
    """Prints the table; how many bars are missed."""
    from django.core.management import call_command
    from django.db.models import Max

    from agents.models import Settlement
    from markets.models import Outcome
    from scoring.models import BrierScore, ForecastScore, Leaderboard, QuestionDifficulty, Snapshot

    begin = Snapshot.objects.aggregate(last=Max("taken_at"))["last"]
    watch = Stopwatch(large=Snapshot.objects.count() >= LARGE, profile=profile)
    priced = Outcome.objects.exclude(price=None).exclude(token_id="")
    httpx.put(f"{venue}/midpoints", json={outcome.token_id: str(outcome.price) for outcome in priced})
    minutes = iter(range(10, 1000, 10))

    def command(name: str, **options: Any) -> Callable[[], object]:
        at = begin + timedelta(minutes=next(minutes))
        return lambda: call_command(name, at=at, json=True, stdout=StringIO(), **options)

    last, *markets_of_passes = chosen_markets(markets + 1, positions)
    command("take_snapshots")()  # the first pass stores prices that the generator rounded otherwise
    watch.time("take_snapshots", command("take_snapshots"), bar="take_snapshots")
    rows, settled = venue_rows(set(markets_of_passes)), Settlement.objects.count()
    httpx.put(f"{venue}/markets", json=rows, timeout=60)
    watch.time(
        f"check_resolutions, {len(markets_of_passes)} markets resolved", command("check_resolutions"), bar="settle"
    )
    print(f"  {Settlement.objects.count() - settled} positions settled, {len(rows)} markets looked up")
    watch.time("take_snapshots after it", command("take_snapshots"))
    watch.time("compute_scores after it", command("compute_scores"))
    watch.time("compute_scores, nothing new", command("compute_scores"))
    httpx.put(f"{venue}/markets", json=venue_rows({last}), timeout=60)
    watch.time("check_resolutions, one market resolved", command("check_resolutions"))
    watch.time("compute_scores after it", command("compute_scores"), bar="scores of one market")
    for derived in (BrierScore, ForecastScore, Leaderboard, QuestionDifficulty):
        derived._default_manager.all().delete()
    watch.time("compute_scores from nothing", command("compute_scores"), bar="scores from nothing")
    return watch.missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", required=True)
    parser.add_argument("--markets", type=int, default=200)
    parser.add_argument("--positions", type=int, default=280)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with running_venue() as venue:
        os.environ |= {f"{name}_BASE_URL": venue for name in ("GAMMA", "CLOB")}
        set_up_production(options.database)
        with rolled_back():
            missed = measure(venue, options.markets, options.positions, profile=options.profile)
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
