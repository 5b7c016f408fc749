"""Visitors beside jobs: while a job in another process has its whole work uncommitted, every entry point answers.

Nothing is timed. The visitor's connection waits for no lock and may write nothing, so a page that does either fails.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

import pytest

from tests.arena_site.addresses import OPERATIONS, REFUSED, administration, endpoints, pages
from tests.faults.processes import FORK, CommandRunner

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]

PATIENCE_S = 120


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
    assert {address: status for address, status in answers.items() if status != 200} == REFUSED
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
    answers = {
        address: reader.get(address, follow=True).status_code for address in (*pages(), *endpoints(), *OPERATIONS)
    }
    return answers | {address: operator.get(address).status_code for address in administration()}


def _committed() -> tuple[int, int]:
    from agents.models import Settlement
    from scoring.models import Snapshot

    return Settlement.objects.count(), Snapshot.objects.count()
