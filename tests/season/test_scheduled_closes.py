"""Scheduled closes: a question closes when its venue expects the event to end, on pages, in prompts and selection."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from cohorts.models import Methodology
from markets.models import Market, Question, QuestionBatch
from scoring.exports.verification.verifier import verify_archive
from tests.answers import GPT
from tests.commands import run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.markup import get_page, table_rows, visible_text
from tests.sandbox import Kalshi, Venue

GAME = "Team A vs Team B"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SUNDAY = datetime(2026, 8, 2, tzinfo=UTC)
EXPECTED, LAST_TRADE = datetime(2026, 8, 9, 2, tzinfo=UTC), datetime(2026, 8, 15, 23, tzinfo=UTC)


@pytest.fixture
def rows(venue: Venue, kalshi: Kalshi) -> list[dict[str, Any]]:
    """The venue's rows of a game, whose trading closes days after the game; one model is asked."""
    line_up(GPT)
    rows = kalshi.event(GAME, "Team A", "Team B", volume=50_000)
    for row in rows:
        row.update(close_time="2026-08-15T23:00:00Z", expected_expiration_time="2026-08-09T02:00:00Z")
    return rows


def say_closes(rows: list[dict[str, Any]], expected: str | None) -> None:
    for row in rows:
        row["expected_expiration_time"] = expected


def shown_closes(venue: Venue) -> set[str]:
    """The closing days in the prompts since the last call."""
    closes = {question["closes"] for prompt in venue.asked for question in prompt.questions}
    venue.asked.clear()
    return closes


def test_question_closes_when_its_event_is_expected_to_end(
    venue: Venue, rows: list[dict[str, Any]], client: Client
) -> None:
    assert run("sync_markets", SUNDAY).code == 0
    assert run("run_forecasts", SUNDAY + 2 * HOUR).code == 0
    assert shown_closes(venue) == {"2026-08-09"}
    question, market = Question.objects.get(), Market.objects.all()[0]
    assert question.closes_at == market.closes_at == EXPECTED
    assert "Scheduled close 9 Aug 2026" in visible_text(get_page(client, f"/questions/{question.pk}/"))
    assert "Scheduled close 9 Aug 2026" in visible_text(get_page(client, f"/markets/{market.pk}/"))
    for address in ("/questions/", "/markets/?source=kalshi"):
        assert "9 Aug 2026" in table_rows(get_page(client, address))[1]
    assert client.get(f"/api/v1/questions/{question.pk}/").json()["closes_at"] == "2026-08-09T02:00:00Z"
    assert client.get("/api/v1/questions/?closes_at__lt=2026-08-10").json()["count"] == 1


def test_selection_prefers_the_game_that_ends_within_the_horizon(
    venue: Venue, kalshi: Kalshi, rows: list[dict[str, Any]]
) -> None:
    """Both games trade beyond the horizon of ten days; the smaller one is played within it."""
    for row in kalshi.event("Team C vs Team D", "Team C", "Team D", volume=90_000):
        row.update(close_time="2026-08-30T23:00:00Z", expected_expiration_time="2026-08-29T23:00:00Z")
    forecast_rules = Methodology.objects.get(version="v2").forecast | {"latest_days": 10}
    with guards_removed():
        Methodology.objects.filter(version="v2").update(forecast=forecast_rules)
    run("sync_markets", SUNDAY)
    run("run_forecasts", SUNDAY + 2 * HOUR, questions=1)
    assert [question.text for question in Question.objects.all()] == [GAME]


def test_later_sync_moves_the_close_of_an_open_question_and_no_prompt(
    venue: Venue, rows: list[dict[str, Any]], client: Client, tmp_path: Any
) -> None:
    say_closes(rows, None)
    run("sync_markets", SUNDAY)
    run("run_forecasts", SUNDAY + 2 * HOUR)
    assert shown_closes(venue) == {"2026-08-15"}
    block = QuestionBatch.objects.earliest("pk").block
    changed = Question.objects.get().updated_at

    say_closes(rows, "2026-08-09T02:00:00Z")
    assert run("sync_markets", SUNDAY + 3 * HOUR).code == 0
    question = Question.objects.get()
    assert (question.closes_at, question.updated_at > changed) == (EXPECTED, True)
    assert "Scheduled close 9 Aug 2026" in visible_text(get_page(client, f"/questions/{question.pk}/"))
    run("run_forecasts", SUNDAY + DAY + 2 * HOUR)
    assert shown_closes(venue) == {"2026-08-09"}
    assert QuestionBatch.objects.earliest("pk").block == block
    day_row = client.get(f"/api/v1/questions/{question.pk}/").json()["days_asked"]
    assert [day["closes_on"] for day in day_row] == ["2026-08-15", "2026-08-09"]
    assert run("export_dataset", SUNDAY + 2 * DAY, out=tmp_path / "archive").code == 0
    assert verify_archive(tmp_path / "archive").violations == []


def test_close_that_an_earlier_release_stored_is_corrected_though_its_market_is_right(
    venue: Venue, rows: list[dict[str, Any]]
) -> None:
    run("sync_markets", SUNDAY)
    run("run_forecasts", SUNDAY + 2 * HOUR)
    Question.objects.update(closes_at=LAST_TRADE)
    run("sync_markets", SUNDAY + 3 * HOUR)
    assert Question.objects.get().closes_at == EXPECTED


def test_closed_question_keeps_its_close(venue: Venue, kalshi: Kalshi, rows: list[dict[str, Any]]) -> None:
    run("sync_markets", SUNDAY)
    run("run_forecasts", SUNDAY + 2 * HOUR)
    for row in rows:
        row["close_time"] = "2026-08-03T01:00:00Z"  # as the venue states it once the game has been called off
    kalshi.end(rows, "closed")
    run("check_resolutions", SUNDAY + DAY + 2 * HOUR)
    run("sync_markets", SUNDAY + DAY + 3 * HOUR)
    assert (Question.objects.get().status, Question.objects.get().closes_at) == ("closed", EXPECTED)
