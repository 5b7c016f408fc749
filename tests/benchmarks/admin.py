"""How quick is the admin over a large arena? `uv run python -m tests.benchmarks.admin --database URL [--requests 3]`.

Asks in one process, as a superuser, for the front page, every action, and of every registered model: its list, all
that a link of the list leads to (filters, orders, pages, dates), searches, and the pages of two rows. Prints the
least milliseconds that each took of this process (with SQLite, of the database too) and by the clock, and its
queries; `!` marks what misses its bar of the former. The database, which `generate` filled, is left as it was.
"""

import argparse
import html
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.environment import set_up_production

BAR = 150.0
"""Milliseconds that a page may take."""
WORDS = ("rain", "gpt", "12")
"""What is searched for: a word of questions, one of models, and a number."""
LINK = re.compile(r'href="(\?[^"]+)"')
ROW = re.compile(r'href="(/admin/[^"?]+/change/)')


def paths(client: Any) -> Iterator[str]:
    """Every page, each list's own as they are found on it."""
    from django.contrib import admin
    from django.urls import reverse

    from arena_site.dashboard.actions import ACTIONS

    yield reverse("admin:index")
    yield from (action.path() for action in ACTIONS.values())
    for model, registered in admin.site._registry.items():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        address = reverse(f"{name}_changelist")
        yield address
        page = client.get(address).content.decode()
        yield from (address + html.unescape(link) for link in dict.fromkeys(LINK.findall(page)))
        yield from (f"{address}?q={word}" for word in WORDS if registered.search_fields)
        rows = [row for row in ROW.findall(page) if row.startswith(address)]
        yield from dict.fromkeys([*rows[:1], *rows[-1:]])


@dataclass(frozen=True, slots=True)
class Cost:
    """Milliseconds of this process and by the clock, and queries."""

    processor_ms: float
    clock: float
    queries: int


def cost(client: Any, path: str, requests: int) -> Cost:
    """The least that an answer took."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        answer = client.get(path)
    queries = len(captured)
    if answer.status_code != 200:
        raise SystemExit(f"{path}: HTTP {answer.status_code}")
    took = []
    for _ in range(requests):
        processor_s, clock = time.process_time(), time.perf_counter()
        client.get(path)
        took.append((time.process_time() - processor_s, time.perf_counter() - clock))
    processor_s, clock = map(min, zip(*took, strict=True))
    return Cost(processor_s * 1000, clock * 1000, queries)


def measure(requests: int) -> int:
    """Prints the table; how many pages miss the bar."""
    from django.contrib.auth.models import User
    from django.db import transaction
    from django.test import Client

    missed = 0
    with transaction.atomic():
        client = Client(headers={"host": "localhost"})
        client.force_login(User.objects.create(username="benchmark", is_staff=True, is_superuser=True))
        print(f"{'':2}{'ms':>8}{'clock':>8}{'queries':>9}")
        for path in paths(client):
            of = cost(client, path, requests)
            missed += of.processor_ms > BAR
            print(
                f"{'!' if of.processor_ms > BAR else ' ':2}{of.processor_ms:8.1f}{of.clock:8.1f}{of.queries:9}  {path}",
                flush=True,
            )
        transaction.set_rollback(True)
    return missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", metavar="URL", required=True, help="a database that `generate` filled")
    parser.add_argument("--requests", type=int, default=3, help="answers for each page")
    options = parser.parse_args()
    set_up_production(options.database)
    raise SystemExit(bool(measure(options.requests)))


if __name__ == "__main__":
    main()
