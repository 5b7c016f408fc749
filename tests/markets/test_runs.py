"""The record of runs: one whose process was killed does not look busy for ever."""

from datetime import timedelta

import pytest
from django.utils import timezone

from markets.models import Run
from tests.commands import run
from tests.venue import SUNDAY, Venue

LONGEST = Run.LONGEST


@pytest.fixture
def killed(venue: Venue) -> Run:
    """A sync whose process was gone before it could say how it ended."""
    venue.market("Will it rain?")
    return Run.objects.create(
        kind="sync_markets", at=SUNDAY, started_at=timezone.now() - LONGEST - timedelta(minutes=1)
    )


def test_next_run_of_the_kind_fails_the_one_that_never_ended(killed: Run) -> None:
    run("sync_markets", SUNDAY)
    killed.refresh_from_db()
    assert (killed.status, killed.error) == ("failed", "lost: its process ended without recording a result")
    assert killed.finished_at is not None
    assert Run.objects.filter(kind="sync_markets").exclude(pk=killed.pk).get().status == "succeeded"


def test_run_of_another_kind_or_one_that_may_still_be_busy_is_left_alone(killed: Run) -> None:
    busy = Run.objects.create(kind="take_snapshots", at=SUNDAY, started_at=timezone.now() - LONGEST / 2)
    run("take_snapshots", SUNDAY)
    for row in (killed, busy):
        row.refresh_from_db()
        assert (row.status, row.finished_at) == ("running", None)


def test_run_that_was_thought_lost_still_has_the_last_word(venue: Venue) -> None:
    with Run.objects.recorded("sync_markets", SUNDAY) as slow:
        Run.objects.update(started_at=timezone.now() - LONGEST - timedelta(minutes=1))
        run("sync_markets", SUNDAY)
        assert Run.objects.get(pk=slow.pk).status == "failed"
    slow.refresh_from_db()
    assert (slow.status, slow.error) == ("succeeded", "")
