"""The window of a week's decisions: the form and the command agree on whom they would ask, at any instant."""

from datetime import datetime, timedelta

import pytest
import time_machine
from django_q.models import OrmQ

from arena_site import jobs
from tests.answers import GPT
from tests.arena_site.dashboard.accounts import action_path, perform, sign_in
from tests.commands import SUNDAY, run
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.script import Failure

pytestmark = pytest.mark.django_db
FREEZE = SUNDAY + timedelta(minutes=5)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def start(venue: Venue) -> None:
    with time_machine.travel(SUNDAY, tick=False):
        venue.market("Will it rain?")
        venue.start_first_cohort()


def freeze(venue: Venue) -> None:
    """The first decisions, of which one fails."""
    venue.says(GPT, Failure(503), {"action": "HOLD"})
    with time_machine.travel(SUNDAY, tick=False):
        assert run("run_decisions", FREEZE)["failed"] == 1


started = shared_rows_at_venue(start)
frozen = shared_rows_at_venue(freeze, after=started, name="started")


def asked_by_form(venue: Venue, at: datetime) -> int:
    """The number of agents that the form shows, which are those that its job asks."""
    operator, before = sign_in("operator"), len(venue.asked)
    preview = operator.get(action_path("run_decisions")).context["preview"]
    assert preview.possible == bool(preview.details)
    perform(operator, "run_decisions")
    for message in OrmQ.objects.all():
        jobs.decisions(*message.task["args"])
    assert len(venue.asked) - before == len(preview.details)
    return len(preview.details)


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (FREEZE, 1),
        (SUNDAY + DAY - MINUTE, 1),
        (FREEZE + DAY - 5 * MINUTE, 1),
        (FREEZE + DAY, 0),
        (SUNDAY + 2 * DAY, 0),
        (SUNDAY + 7 * DAY - MINUTE, 0),
        (SUNDAY + 7 * DAY, 7),
        (SUNDAY + 35 * DAY, 0),
    ],
)
def test_form_and_command_agree_on_a_week_whose_prices_are_frozen(
    frozen: tuple[Venue, None], venue: Venue, at: datetime, expected: int
) -> None:
    venue.as_left(frozen[0])
    with time_machine.travel(at, tick=False):
        by_command = run("run_decisions", at, dry_run=True)["asked"]
        assert (by_command, asked_by_form(venue, at)) == (expected, expected)


@pytest.mark.parametrize("at", [SUNDAY, SUNDAY + DAY, SUNDAY + 2 * DAY, SUNDAY + 7 * DAY - MINUTE])
def test_form_and_command_agree_on_a_week_without_frozen_prices(
    started: tuple[Venue, None], venue: Venue, at: datetime
) -> None:
    venue.as_left(started[0])
    with time_machine.travel(at, tick=False):
        by_command = run("run_decisions", at, dry_run=True)["asked"]
        if at >= SUNDAY + DAY:
            assert jobs.decisions() == "the week's window is closed", "the schedule begins none this late"
        assert (by_command, asked_by_form(venue, at)) == (7, 7)


def test_form_says_that_a_late_cohorts_decisions_are_left_to_a_person() -> None:
    for at, warned in ((SUNDAY + timedelta(hours=23), False), (SUNDAY + timedelta(hours=23, minutes=1), True)):
        with time_machine.travel(at, tick=False):
            preview = sign_in("operator").get(action_path("start_cohort")).context["preview"]
        assert preview.possible
        assert ("run them from here" in preview.warning) == warned
