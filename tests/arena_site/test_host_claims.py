"""One host works on a database: a second one, or a restored copy, does nothing until `arena --take-over`."""

from io import StringIO
from typing import Any

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.models import OrmQ, Schedule

from agents.models import Decision, Forecast
from arena_site import jobs
from arena_site.models import HostClaim, Worker
from arena_site.operations.host_claims import host_id, release_host
from cohorts.models import Cohort
from markets.models import Market
from tests.commands import DECISION, SUNDAY
from tests.sandbox import Venue

pytestmark = pytest.mark.django_db


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("django_q.conf.Conf.POLL", 0)
    return get_broker()


@pytest.fixture
def served_elsewhere(settings: Any) -> None:
    """A database that another host has claimed."""
    settings.ARENA_HOST_ID = "first"
    arena("--take-over")
    settings.ARENA_HOST_ID = "second"


def arena(*options: str) -> str:
    output = StringIO()
    call_command("arena", *options, stdout=output, stderr=output)
    return output.getvalue()


def test_take_over_stores_an_id_of_machine_and_database() -> None:
    arena("--take-over")
    assert HostClaim.objects.get().host_id == host_id()
    assert len(host_id()) == 16


def test_arena_of_a_second_host_refuses_and_names_the_remedy(served_elsewhere: None) -> None:
    with pytest.raises(CommandError, match=r"served by host first .*this is second.*manage.py arena --take-over$"):
        arena()
    with pytest.raises(CommandError, match="arena --take-over"):
        arena("--now")


def test_take_over_moves_the_database_to_this_host(served_elsewhere: None, settings: Any) -> None:
    assert "host second works on the database now" in arena("--take-over")
    assert HostClaim.objects.get().host_id == "second"
    settings.ARENA_HOST_ID = "first"
    with pytest.raises(CommandError, match="served by host second"):
        arena("--now")


@pytest.mark.parametrize(
    ("function", "arguments"),
    [("sync", ()), ("cohort", ()), ("decisions", ()), ("missed_decisions", ()), ("archive", ()), ("forecasts", ())],
)
def test_job_on_a_second_host_refuses(served_elsewhere: None, function: str, arguments: tuple[int, ...]) -> None:
    with pytest.raises(jobs.JobFailed, match="arena --take-over"):
        getattr(jobs, function)(*arguments)


@pytest.mark.django_db(transaction=True)  # the scheduler opens a connection of its own
def test_worker_of_a_second_host_waits_until_it_takes_over(
    served_elsewhere: None, broker: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Schedule.objects.all().delete()
    jobs.enqueue("sync")
    jobs.install()
    Schedule.objects.update(next_run=timezone.now())
    for _ in range(3):
        monkeypatch.setattr(broker, "scheduled_s", -100.0)
        assert broker.dequeue() is None
    assert (OrmQ.objects.count(), Worker.objects.count()) == (1, 0)
    lines = [record.getMessage() for record in caplog.records if "--take-over" in record.getMessage()]
    assert len(lines) == 1
    arena("--take-over")
    assert broker.dequeue() is not None
    assert Worker.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_database_that_nobody_claimed_is_anybodys(broker: Any) -> None:
    jobs.enqueue("sync")
    assert broker.dequeue() is not None


def test_restored_copy_waits_for_a_host(broker: Any) -> None:
    arena("--take-over")
    release_host(at=timezone.now())
    jobs.enqueue("sync")
    assert broker.dequeue() is None
    with pytest.raises(CommandError, match=r"restored from a backup and waits; .*arena --take-over"):
        arena("--now")


def test_now_does_once_what_waits_for_sunday(venue: Venue) -> None:
    venue.market("Will it rain?")
    with time_machine.travel(DECISION, tick=False):
        arena("--now")
        assert Cohort.objects.get().week_start == SUNDAY
        assert Market.objects.exists()
        decided, forecasts, prompt_count = Decision.objects.count(), Forecast.objects.count(), len(venue.asked)
        assert decided == 7
        assert forecasts > 0
        arena("--now")
    assert (Decision.objects.count(), Forecast.objects.count(), len(venue.asked)) == (decided, forecasts, prompt_count)


def test_now_names_the_step_that_failed_and_goes_on_without_a_cohort_no_further(venue: Venue, settings: Any) -> None:
    settings.GAMMA_BASE_URL, settings.ARENA_LINEUP = "http://127.0.0.1:9", "approve"
    settings.OPENROUTER_BASE_URL = "http://127.0.0.1:9"
    with (
        time_machine.travel(DECISION, tick=False),
        pytest.raises(CommandError, match=r"^sync_markets, start_cohort fai"),
    ):
        arena("--now")
    assert not Cohort.objects.exists()
