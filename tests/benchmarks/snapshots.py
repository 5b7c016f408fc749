"""What a snapshot pass costs: `uv run python -m tests.benchmarks.snapshots [--postgres]`.

Takes snapshots of 35 and of 140 agents in one run, and prints queries, CLOB calls, seconds of database work and of the
whole, side by side, with the ratio of the bigger to the smaller.
"""

import argparse
import json
import logging
import time
from datetime import timedelta
from typing import Any

from tests.benchmarks.filled import scratch_database

COLUMNS = ("agents", "open positions", "queries", "CLOB calls", "database s", "whole s")


def measure(cohorts: int) -> tuple[float, ...]:
    """One row of COLUMNS for a first pass over `cohorts` cohorts, on an otherwise empty database."""
    from django.db import connection, transaction
    from pytest_httpserver import HTTPServer
    from werkzeug import Request, Response

    from markets.sources.polymarket import Clob
    from scoring.services.snapshots import take_snapshots
    from tests.bulk_factories import create_portfolios

    spent, queries, calls = 0.0, 0, 0

    def timed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal spent, queries
        began = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            spent, queries = spent + time.perf_counter() - began, queries + 1

    def midpoints(request: Request) -> Response:
        nonlocal calls
        calls += 1
        body = {item["token_id"]: "0.41" for item in request.get_json()}
        return Response(json.dumps(body), content_type="application/json")

    with transaction.atomic(), HTTPServer(threaded=True) as server:
        server.expect_request("/midpoints").respond_with_handler(midpoints)
        made = create_portfolios(cohorts=cohorts, positions=32)
        with Clob(server.url_for("/")) as clob, connection.execute_wrapper(timed):
            began = time.perf_counter()
            report = take_snapshots(at=made.at + timedelta(minutes=10), clob=clob)
            whole = time.perf_counter() - began
        assert report.snapshots == made.agents, report
        transaction.set_rollback(True)
    return made.agents, made.positions, queries, calls, spent, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true")
    options = parser.parse_args()
    with scratch_database(postgres=options.postgres):
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        measure(1)  # warms imports and caches
        small, big = measure(5), measure(20)
        print(f"{'':16}{'small':>12}{'big':>12}{'ratio':>8}")
        for name, a, b in zip(COLUMNS, small, big, strict=True):
            print(f"{name:16}{a:>12.4g}{b:>12.4g}{b / a:>8.2f}")


if __name__ == "__main__":
    main()
