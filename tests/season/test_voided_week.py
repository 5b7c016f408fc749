"""A voided week: its cohort leaves every leaderboard, visibly, and all that it did stays on record."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.test import Client

from agents.models import Decision, Trade
from arena_site.models import AuditEntry
from arena_verifier.program import verify
from cohorts.models import Cohort
from tests.answers import GPT, GROK, HOLD, bet
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.markup import get_page, visible_text
from tests.sandbox import Venue
from tests.scoring.exports.forgery import rewrite
from tests.shared_rows import shared_rows_at_venue

pytestmark = pytest.mark.django_db
WEEK, DAY = timedelta(weeks=1), timedelta(days=1)
TUESDAY = SUNDAY + WEEK + 2 * DAY
SETTLED = TUESDAY - DAY / 2
REASON = "the prices of a test venue were frozen"


def play(venue: Venue) -> None:
    """GPT-5.2 wins 37.5 % in cohort 1 and loses 10 % in cohort 2."""
    for question in ("Will it rain?", "Will it snow?", "Will it hail?"):
        venue.market(question)
    line_up(GPT, GROK)
    venue.says(GPT, bet("Will it rain?", "YES", 2500), HOLD, bet("Will it snow?", "YES", 1000))
    for sunday in (SUNDAY, SUNDAY + WEEK):
        run("sync_markets", sunday)
        run("start_cohort", sunday)
        assert run("run_decisions", sunday + timedelta(minutes=5)).code == 0
        run("take_snapshots", sunday + DAY)
    venue.resolve("Will it rain?", "Yes")
    venue.resolve("Will it snow?", "No")
    for command in ("check_resolutions", "take_snapshots"):
        run(command, SETTLED)


played = shared_rows_at_venue(play)


@pytest.fixture(autouse=True)
def two_weeks(played: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(played[0])


def void(week: object = 1) -> Any:
    with time_machine.travel(TUESDAY, tick=False):
        return run("void_week", TUESDAY, week, reason=REASON)


def figures(client: Client, **query: str) -> tuple[Any, ...]:
    rows = client.get("/api/v1/leaderboard/", {"protocol": "trading", **query}).json()["results"]
    row = next(row for row in rows if row["family"] == "gpt-5.1")
    curve = client.get("/api/v1/performance/", {"family": "gpt-5.1"}).json()["series"][0]["points"]
    return row["cohorts"], row["return_percent"], row["brier"], Decimal(curve[-1][1])


def test_voided_week_leaves_boards_and_curves_present_and_past(client: Client) -> None:
    with time_machine.travel(TUESDAY + DAY, tick=False):
        assert figures(client) == (2, pytest.approx(13.75), pytest.approx(0.08), Decimal("11375.00"))
        assert void()["changed"]
        assert figures(client) == (1, pytest.approx(-10), pytest.approx(0.16), Decimal("9000.00"))
        series = client.get("/api/v1/performance/", {"cohort": "1", "family": "gpt-5.1"}).json()["series"]
    assert Decimal(series[0]["points"][-1][1]) == Decimal("13750.00")


def test_voided_week_is_shown_and_its_record_stays(client: Client) -> None:
    assert not void()["message"].startswith("Nothing")
    assert not void("2026-03-10")["changed"]  # the same week, by one of its days
    row = client.get("/api/v1/cohorts/1/").json()
    assert (row["voided_at"], row["void_reason"]) == ("2026-03-17T00:00:00Z", REASON)
    for path in ("/cohorts/1/", "/cohorts/1/gpt-5.1/", "/cohorts/"):
        assert REASON in visible_text(get_page(client, path))
    assert f"Left out as voided: cohort 1 ({REASON})." in visible_text(get_page(client, "/trading/"))
    assert (Decision.objects.filter(cohort__number=1).count(), Trade.objects.count()) == (4, 2)
    entry, unchanged = AuditEntry.objects.order_by("pk")
    assert (entry.action, entry.by, entry.reason, entry.result) == ("void-week", "manage.py", REASON, "done")
    assert unchanged.result == "unchanged"


def test_voided_week_is_asked_nothing_more_and_misses_nothing(two_weeks: Venue) -> None:
    void()
    third = DECISION + 2 * WEEK
    run("sync_markets", third)
    output = run("run_decisions", third)
    assert (output["asked"], output["missed"]) == (2, 0)
    run("check_resolutions", third + 3 * DAY)
    assert not Decision.objects.filter(cohort__number=1, week__gt=2).exists()


def test_voiding_is_final(client: Client) -> None:
    void()
    with pytest.raises(IntegrityError, match="the voiding of a cohort is on record"), transaction.atomic():
        Cohort.objects.filter(number=1).update(voided_at=None, void_reason="")


@pytest.mark.parametrize("week", ["9", "2026-01-01", "last", "²"])
def test_week_without_a_cohort_is_refused(week: str) -> None:
    assert void(week).code == 2
    assert not AuditEntry.objects.exists()


def test_archive_with_a_voided_week_verifies_and_one_that_hides_it_does_not(tmp_path: Path) -> None:
    void()
    out = tmp_path / "archive"
    assert run("export_dataset", TUESDAY + DAY, out=out).code == 0
    assert run("verify_export", None, str(out)).code == 0
    assert [line for lines in verify(out)[0].values() for line in lines] == []

    def restore_the_week(rows: list[dict[str, str]]) -> None:
        rows[0].update(voided_at="", void_reason="")

    rewrite(out, "cohorts", restore_the_week, record=True)
    forged = [line for lines in verify(out)[0].values() for line in lines]
    assert any(line.startswith("leaderboard_trading: all, gpt-5.1") for line in forged), forged
    assert run("verify_export", None, str(out)).code == 1
