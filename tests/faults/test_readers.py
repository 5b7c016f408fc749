"""Visitors beside jobs: while a job in another process has its whole work uncommitted, every entry point answers.

Nothing is timed. The visitor's connection waits for no lock and may write nothing, so a page that does either fails.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest

from tests.faults.processes import FORK, CommandRunner

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]

PATIENCE_S = 120
FILES = ("daily-chain-heads", "archive-zip", "archive-file", "dataset-file", "kit-package", "kit-wheel")
"""Addresses of published files, which read no database."""
WITHOUT_A_LINK = {"/agents/application/": 410}
"""The status of a page that wants the link of a mail."""
PLACES = {"number": 1, "slug": "gpt-5.1", "version": "v1"}
"""Parts of addresses beside the ids of rows."""


@pytest.fixture(scope="module")
def played(offline_arena: CommandRunner) -> str:
    name = offline_arena.migrated()
    offline_arena.read(name, _play)
    return name


@pytest.fixture
def name(offline_arena: CommandRunner, played: str) -> Iterator[str]:
    name = offline_arena.database.fresh(played)
    yield name
    offline_arena.database.drop(name)


@contextmanager
def paused_after(
    offline_arena: CommandRunner, name: str, work: Callable[[], Any], *, commits: bool = False
) -> Iterator[None]:
    """A process that has done `work`, stands still, and ends with the block: only then it commits what it did."""
    finished, over = FORK.Event(), FORK.Event()

    def job() -> int:
        from django.db import transaction

        with nullcontext() if commits else transaction.atomic():
            result = work()
            finished.set()
            over.wait()
            del result
        return 0

    process = offline_arena.start(name, job)
    try:
        assert finished.wait(PATIENCE_S), "its work is not done"
        yield
    finally:
        over.set()
        process.join()
    assert process.exitcode == 0


def settlement() -> None:
    """Pays everybody who holds the market that most hold, and scores it."""
    from agents.services.resolutions import Resolution
    from agents.services.settlement import settle_market
    from markets.models import Market
    from scoring.services.scores import compute_scores
    from tests.factories import WEEK

    market = Market.objects.filter(positions__status="open").order_by("pk")[0]
    assert settle_market(market, Resolution(market.outcomes.get(side="YES")), at=WEEK + timedelta(days=40))
    compute_scores(at=WEEK + timedelta(days=40))


def snapshots() -> None:
    from markets.sources.polymarket import Clob
    from scoring.services.snapshots import take_snapshots
    from tests.factories import WEEK

    with Clob("http://127.0.0.1:9", retries=0) as clob:
        assert take_snapshots(at=WEEK + timedelta(days=40), clob=clob).snapshots


def test_every_page_answers_while_jobs_hold_their_transaction_open(offline_arena: CommandRunner, name: str) -> None:
    session, before = offline_arena.read(name, _log_in), offline_arena.read(name, _committed)
    with paused_after(offline_arena, name, lambda: (settlement(), snapshots())):
        answers = offline_arena.read(name, lambda: _visit_everything(session))
        assert offline_arena.read(name, _committed) == before
    after = offline_arena.read(name, _committed)
    assert all(number > number_before for number, number_before in zip(after, before, strict=True))
    assert {address: status for address, status in answers.items() if status != 200} == WITHOUT_A_LINK
    assert len(answers) > 150


def test_a_job_commits_while_a_page_is_in_the_middle_of_reading(offline_arena: CommandRunner, name: str) -> None:
    before = offline_arena.read(name, _committed)
    with paused_after(offline_arena, name, _read_a_little, commits=True):
        offline_arena.read(name, lambda: _impatient() or settlement())
        assert offline_arena.read(name, _committed) > before


def _play() -> None:
    from django.contrib.auth import get_user_model

    from tests.bulk_factories import create_portfolios
    from tests.factories import play_week

    create_portfolios(cohorts=2, positions=4, markets=20)
    play_week()
    get_user_model().objects.create_superuser("operator")


def _impatient(*, may_write: bool = True) -> None:
    """This process gives up at once where it would have to wait, and is refused any write unless told."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA busy_timeout = 0")
            cursor.execute(f"PRAGMA query_only = {int(not may_write)}")
        else:
            cursor.execute("SET lock_timeout = '1ms'")
            cursor.execute(f"SET default_transaction_read_only = {'off' if may_write else 'on'}")


def _read_a_little() -> Any:
    """The first of many rows; whoever keeps it keeps the rest to be read."""
    from agents.models import Trade

    trades = Trade.objects.iterator(chunk_size=1)
    return next(trades), trades


def _log_in() -> str:
    from django.contrib.auth import get_user_model
    from django.test import Client

    operator = Client()
    operator.force_login(get_user_model().objects.get())
    return operator.cookies["sessionid"].value


def _visit_everything(session: str) -> dict[str, int]:
    """The status of every address that a stranger and an operator can look at."""
    from django.test import Client

    _impatient(may_write=False)
    reader, operator = Client(raise_request_exception=False), Client(raise_request_exception=False)
    operator.cookies["sessionid"] = session
    answers = {address: reader.get(address, follow=True).status_code for address in (*_pages(), *_endpoints(reader))}
    return answers | {address: operator.get(address).status_code for address in _administration()}


def _pages() -> Iterator[str]:
    from django.urls import get_resolver, reverse

    from agents.models import Decision, Forecast
    from markets.models import Market, Question, Universe, UniverseEntry

    rows = {"decision": Decision, "forecast": Forecast, "market": Market, "question": Question, "universe": Universe}
    entry = UniverseEntry.objects.order_by("pk")[0]
    page_names = {
        "external-agent": {"slug": "visitor"},
        "comparison": {"first": "gpt-5.1", "second": "grok-4"},
        "share-image": {"name": "trading", "extension": "png"},
        "sitemap": {"section": "decisions"},
        "universe-entry": {"pk": entry.universe_id, "market": entry.market_id},
    }
    patterns = list(get_resolver("arena_site.pages.urls").url_patterns)
    for pattern in patterns:
        if hasattr(pattern, "url_patterns"):
            patterns += pattern.url_patterns
            continue
        if pattern.name in FILES or pattern.name.endswith("-chart"):  # a chart is read as its page is
            continue
        row = {"pk": rows[pattern.name].objects.order_by("pk")[0].pk} if pattern.name in rows else {}
        place_names = PLACES | row | page_names.get(pattern.name, {})
        yield reverse(pattern.name, kwargs={key: place_names[key] for key in pattern.pattern.converters})


def _endpoints(reader: Any) -> Iterator[str]:
    from arena_site.api import ENDPOINTS

    yield from ("/api/schema/", "/api/docs/")
    for prefix, viewset in ENDPOINTS.items():
        yield (address := f"/api/v1/{prefix}/")
        if not hasattr(viewset, "retrieve"):
            continue
        name = getattr(viewset, "lookup_field", "pk")
        for row in reader.get(address).json()["results"][:1]:
            if (key := row.get("id" if name == "pk" else name)) is not None:
                yield f"{address}{key}/"


def _administration() -> Iterator[str]:
    from django.contrib import admin
    from django.urls import reverse

    yield reverse("admin:index")
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        yield reverse(f"{name}_changelist")
        if (row := model._default_manager.first()) is not None:
            yield reverse(f"{name}_change", args=[row.pk])


def _committed() -> tuple[int, int]:
    from agents.models import Settlement
    from scoring.models import Snapshot

    return Settlement.objects.count(), Snapshot.objects.count()
