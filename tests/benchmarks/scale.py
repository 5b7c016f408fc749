"""How quick is a large arena? `uv run python -m tests.benchmarks.scale [--postgres] [--small] [--requests 40]`.

Fills a database (or takes the one of `--database`, as `generate` left it), starts the server as `manage.py arena`
does, and asks for every endpoint and page at 1 and at 8 connections: as it is, and those whose responses are cached
also after a snapshot pass has invalidated them. Beside it, a view that does nothing. Times are milliseconds; `!`
marks what misses its bar. At last, what a snapshot pass takes on it.
"""

import argparse
import http.client
import json
import logging
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmarks.environment import scratch_url, set_up_production, web_server

ROOT = Path(__file__).resolve().parents[2]
EMPTY = "/healthz"
CACHED = ("/api/v1/leaderboard/", "/api/v1/performance/")
QUICK = tuple(f"/api/v1/{name}/" for name in ("markets", "cohorts", "families", "agents"))
BAR_CACHED, BAR_QUICK, BAR_API, BAR_PAGE = 15.0, 20.0, 40.0, 25.0
"""Milliseconds at the median that a response may take that is not cached."""
BAR_WARM = 1.5
"""How many times as long as an empty view a cached response may take."""
BAR_SNAPSHOT_S = 1.0
MANY, WORKERS = 8, 2
Change = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Times:
    """What a number of answers took."""

    p50: float
    p95: float
    rate: float

    @classmethod
    def of(cls, took: list[float], seconds: float) -> "Times":
        ordered = sorted(took)
        return cls(statistics.median(took) * 1000, ordered[int(len(ordered) * 0.95)] * 1000, len(took) / seconds)


class Unanswered(Exception):
    """The server gave no answer that could be timed."""


def ask(address: tuple[str, int], path: str, number: int, change: Change | None = None) -> list[float]:
    """Seconds that each of a number of answers took on one connection, each after a change if one is given."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    took = []
    for _ in range(number):
        if change is not None:
            change()
            connection.close()  # the server closes connections that stay idle meanwhile
            connection.connect()
        began = time.perf_counter()
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        took.append(time.perf_counter() - began)
        if response.status != http.client.OK:
            raise Unanswered(f"{path}: HTTP {response.status}")
    connection.close()
    return took


def timed(address: tuple[str, int], path: str, number: int, connections: int, change: Change | None = None) -> Times:
    began = time.perf_counter()
    if connections == 1:
        took = ask(address, path, number, change)
    else:
        with ThreadPoolExecutor(connections) as pool:
            tasks = [pool.submit(ask, address, path, number // connections or 1) for _ in range(connections)]
            took = [seconds for task in tasks for seconds in task.result()]
    return Times.of(took, time.perf_counter() - began)


def paths() -> list[str]:
    """Every list and one of its rows, the curves, boards of now and of then, and every page; the API's first."""
    from django.urls import reverse

    from agents.models import Agent, Decision
    from arena_site.api import ENDPOINTS
    from arena_site.pages.navigation import linked_pages
    from markets.models import Market, Universe
    from scoring.models import Snapshot

    agent, market = Agent.objects.select_related("family").order_by("pk")[3], Market.objects.order_by("pk")[7]
    decision, universe = Decision.objects.order_by("-pk")[3], Universe.objects.order_by("pk")[0]
    slug = agent.family.slug
    keys = {"agents": agent.pk, "markets": market.pk, "decisions": decision.pk, "universes": universe.pk}
    rows = {name: keys.get(name) or _some_row(view) for name, view in ENDPOINTS.items()} | {"families": slug}
    day = f"{Snapshot.objects.order_by('-taken_at').values_list('taken_at', flat=True)[0]:%Y-%m-15}"
    addresses = [f"/api/v1/{name}/" for name in ENDPOINTS]
    addresses += [f"/api/v1/{name}/{key}/" for name, key in rows.items() if key is not None]
    curves = ("range=1D", "range=1M", f"cohort={agent.cohort_id}", f"family={slug}", f"as_of={day}")
    addresses += [CACHED[1], *(f"{CACHED[1]}?{query}" for query in curves)]
    addresses += [f"{CACHED[0]}?{query}" for query in ("protocol=forecast", f"as_of={day}")]
    addresses += [f"{CACHED[0]}?protocol=forecast&as_of={day}"]
    addresses += ["/api/v1/calibration/", "/api/v1/comparisons/gpt-5.1/grok-4/", "/api/schema/", "/api/docs/"]
    addresses += [reverse(page) for page in linked_pages()]
    addresses += [f"/?as_of={day}", "/cohorts/1/", f"/cohorts/1/{slug}/", f"/cohorts/1/{slug}/trades/"]
    addresses += [f"/models/{slug}/", f"/markets/{market.pk}/", f"/decisions/{decision.pk}/"]
    addresses += [f"/universes/{universe.pk}/", "/compare/gpt-5.2/grok-4.1/", "/methodology/v1/"]
    addresses += [f"/{name}/{rows[name]}/" for name in ("forecasts", "questions") if rows[name] is not None]
    addresses += ["/feeds/decisions.atom", "/feeds/resolutions.atom", "/sitemap.xml"]
    return sorted(dict.fromkeys(addresses), key=lambda path: (not path.startswith("/api/"), path))


def _some_row(view: Any) -> Any:
    """What names one row of a list; None where there is none, or no address of one."""
    if not hasattr(view, "retrieve"):
        return None
    return view.queryset.order_by("pk").values_list(view.lookup_field, flat=True).first()


def bar(path: str) -> float:
    if not path.startswith("/api/"):
        return BAR_PAGE
    if path.startswith(CACHED):
        return BAR_CACHED
    return BAR_QUICK if path.startswith(QUICK) else BAR_API


def next_pass() -> None:
    """What a pass on the grid changes: a snapshot of every agent, and the boards."""
    from django.db import transaction

    from cohorts.weeks import GRID
    from scoring.models import Leaderboard, Snapshot

    newest = Snapshot.objects.order_by("-taken_at").values_list("taken_at", flat=True)[0]
    rows = list(Snapshot.objects.filter(taken_at=newest))
    for row in rows:
        row.pk, row.taken_at = None, newest + GRID
    with transaction.atomic():
        Snapshot.objects.bulk_create(rows)
        for board in Leaderboard.objects.all():
            board.save()


def measure(requests: int) -> int:
    """Prints the table; how many bars are missed."""
    missed = 0
    with web_server() as address:
        timed(address, "/", 4, MANY)
        empty = {connections: timed(address, EMPTY, requests * 4, connections) for connections in (1, MANY)}
        print(f"{'':60}{'1 connection':>24}{'8 connections':>27}")
        print(f"{'':52}{'bar':>8}{'p50':>8}{'p95':>8}{'p50':>9}{'p95':>8}{'req/s':>10}")
        line(f"empty view ({EMPTY})", None, empty[1], empty[MANY])
        for path in paths():
            try:
                timed(address, path, 4, 1)
            except Unanswered as failure:
                print(f"{failure} !", flush=True)
                missed += 1
                continue
            cached = path.startswith(CACHED) and "as_of" not in path
            if cached:
                timed(address, path, 4 * WORKERS, 2 * WORKERS)
                cold = timed(address, path, max(8, requests // 4), 1, next_pass)
                missed += line(f"{path} after a pass", bar(path), cold, None)
                timed(address, path, 4 * WORKERS, 2 * WORKERS)
            one, many = (timed(address, path, requests, connections) for connections in (1, MANY))
            missed += line(path, empty[1].p50 * BAR_WARM if cached else bar(path), one, many)
    return missed


def line(name: str, limit: float | None, one: Times, many: Times | None) -> bool:
    misses = limit is not None and one.p50 > limit
    least = f"{name[:51]:51}{'!' if misses else ' '}{'' if limit is None else f'{limit:.1f}':>8}"
    columns = f"{many.p50:9.1f}{many.p95:8.1f}{many.rate:10.0f}" if many else ""
    print(f"{least}{one.p50:8.1f}{one.p95:8.1f}{columns}", flush=True)
    return misses


def snapshot_pass() -> int:
    """Prints what a pass over the whole arena takes, the CLOB on this machine; 1 if that is too long."""
    from django.db import transaction
    from pytest_httpserver import HTTPServer
    from werkzeug import Request, Response

    from cohorts.weeks import GRID
    from markets.models import Outcome
    from markets.sources.polymarket import Clob
    from scoring.models import Snapshot
    from scoring.services.snapshots import take_snapshots

    def midpoints(request: Request) -> Response:
        return as_json({item["token_id"]: prices.get(item["token_id"], "0.41") for item in request.get_json()})

    def books(request: Request) -> Response:
        sides = {"bids": [{"price": "0.40", "size": "9"}], "asks": [{"price": "0.42", "size": "9"}]}
        return as_json([{"asset_id": item["token_id"], **sides} for item in request.get_json()])

    def as_json(body: object) -> Response:
        return Response(json.dumps(body), content_type="application/json")

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    prices = {token: str(price) for token, price in Outcome.objects.values_list("token_id", "price")}
    newest = Snapshot.objects.order_by("-taken_at").values_list("taken_at", flat=True)[0]
    with HTTPServer(threaded=True) as venue:
        venue.expect_request("/midpoints").respond_with_handler(midpoints)
        venue.expect_request("/books").respond_with_handler(books)
        with Clob(venue.url_for("/")) as clob, transaction.atomic():
            began = time.perf_counter()
            report = take_snapshots(at=newest + GRID, clob=clob)
            seconds = time.perf_counter() - began
            transaction.set_rollback(True)
    slow = seconds > BAR_SNAPSHOT_S
    of = f"{report.snapshots} agents at {report.priced} prices"
    print(f"{'!' if slow else ' '} a snapshot pass over {of}: {seconds:.2f} s")
    return int(slow)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--requests", type=int, default=40, help="answers for each path and number of connections")
    parser.add_argument("--database", metavar="URL", help="a database that `tests.benchmarks.generate` filled")
    options = parser.parse_args()
    with ExitStack() as stack:
        set_up_production(options.database or stack.enter_context(scratch_url(postgres=options.postgres)))
        if not options.database:
            began = time.perf_counter()
            generate = [sys.executable, "-m", "tests.benchmarks.generate", *(["--small"] if options.small else [])]
            for command in ([sys.executable, "manage.py", "migrate", "-v0"], generate):
                subprocess.run(command, cwd=ROOT, check=True)
            print(f"generated in {time.perf_counter() - began:.0f} s", flush=True)
        missed = measure(options.requests) + snapshot_pass()
    raise SystemExit(bool(missed))


if __name__ == "__main__":
    main()
