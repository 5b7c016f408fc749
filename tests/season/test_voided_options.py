"""Independent options of which one is voided by its venue: the others are scored, everywhere alike."""

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client, override_settings

from agents.models import Family, Forecast
from arena_verifier.program import verify
from markets.models import Question, QuestionOption
from scoring.exports.verification.verifier import verify_archive
from scoring.models import ForecastScore
from tests.answers import GEMINI, GPT, forecast
from tests.commands import SUNDAY, run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.markup import get_page
from tests.markup import table_rows as page_rows
from tests.sandbox import Kalshi, Venue, kalshi_address, take_over
from tests.scoring.exports.archives import table_rows
from tests.scoring.exports.forgery import rewrite
from tests.shared_rows import scripted_venue, shared_rows, shared_rows_at_venue

pytestmark = pytest.mark.slow

STRIKEOUTS = "A vs B: Strikeouts"
PLAYERS = [f"Player {number}: 5+" for number in range(5)]
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ASKED_AT, ENDED_AT = SUNDAY + 2 * HOUR, SUNDAY + 2 * DAY
STATED = dict(zip(PLAYERS, (0.9, 0.1, 0.2, 0.3, 0.6), strict=True))
BRIER = (0.1**2 + 0.2**2 + 0.3**2 + 0.4**2) / 4
"""That of STATED where the first option is void and the last one happened."""


def ask(venue: Venue) -> Kalshi:
    """The second venue with five independent options, on which one model stated STATED, the other even ones."""
    kalshi = Kalshi(venue.server)
    kalshi.event(STRIKEOUTS, *PLAYERS, exclusive=False)
    address = kalshi_address(venue.server)
    with override_settings(KALSHI_BASE_URL=address, ARENA_SOURCES=("polymarket", "kalshi")):
        run("sync_markets", SUNDAY)
        line_up(GPT, GEMINI)
        venue.start_first_cohort()
        venue.says(GPT, *[forecast({STRIKEOUTS: STATED})] * 2)
        assert run("run_forecasts", ASKED_AT).code == 0
    return kalshi


question_day = shared_rows_at_venue(ask)


def end(kalshi: Kalshi, rows: list[dict[str, Any]], *results: str) -> None:
    for row, result in zip(rows, results, strict=True):
        kalshi.end([row], "finalized", result, {"yes": "1.0000", "no": "0.0000", "scalar": "0.2400"}[result])


def happened() -> dict[str, bool | None]:
    return dict(QuestionOption.objects.values_list("name", "happened"))


RESULTS = ("scalar", "no", "no", "no", "yes")


def resolve(day: tuple[Venue, Kalshi]) -> None:
    """The first option is voided, and the last one happened."""
    with scripted_venue() as venue:
        kalshi = Kalshi(venue.server)
        take_over(kalshi, day[1])
        end(kalshi, list(kalshi.markets.values()), *RESULTS)
        address = kalshi_address(venue.server)
        with override_settings(KALSHI_BASE_URL=address, ARENA_SOURCES=("polymarket", "kalshi")):
            ran = run("check_resolutions", ENDED_AT)
    assert (ran["resolved"], ran["cancelled"], ran["questions_resolved"]) == (4, 1, 1)


resolution_day = shared_rows(resolve, after=question_day, name="question_day")


@pytest.fixture
def rows(question_day: tuple[Venue, Kalshi], venue: Venue, kalshi: Kalshi) -> list[dict[str, Any]]:
    """The second venue's rows of those options."""
    take_over(venue, question_day[0])
    take_over(kalshi, question_day[1])
    return list(kalshi.markets.values())


@pytest.fixture
def resolved(resolution_day: None, kalshi: Kalshi, rows: list[dict[str, Any]]) -> Question:
    """The question, of which the first option was voided and the last one happened."""
    end(kalshi, rows, *RESULTS)
    return Question.objects.get()


def test_one_void_option_leaves_the_others_scored(resolved: Question) -> None:
    assert (resolved.status, resolved.resolved_at) == ("resolved", ENDED_AT)
    assert happened() == dict(zip(PLAYERS, (None, False, False, False, True), strict=True))
    assert ForecastScore.objects.count() == Forecast.objects.count() > 0
    for score in ForecastScore.objects.filter(forecast__release__model_id=GPT):
        assert score.brier == pytest.approx(BRIER)
        assert score.market_brier == pytest.approx((3 * 0.4**2 + 0.6**2) / 4)
        assert score.accuracy == 1.0


@pytest.mark.parametrize(
    ("results", "status", "expected"),
    [
        (["scalar"] * 4, "open", [None] * 5),
        (["scalar"] * 5, "cancelled", [None] * 5),
        (["no", "scalar", "scalar", "scalar", "scalar"], "resolved", [False, None, None, None, None]),
        (["yes", "scalar", "yes", "no", "scalar"], "resolved", [True, None, True, False, None]),
    ],
)
def test_question_is_decided_by_the_options_that_are(
    kalshi: Kalshi, rows: list[dict[str, Any]], results: list[str], status: str, expected: list[bool | None]
) -> None:
    end(kalshi, rows[: len(results)], *results)
    run("check_resolutions", ENDED_AT, skip_leaderboards=True)
    assert (Question.objects.get().status, [*happened().values()]) == (status, expected)
    assert ForecastScore.objects.exists() == (status == "resolved")


def test_question_that_one_void_cancelled_before_is_resolved_now(resolved: Question) -> None:
    with guards_removed():
        ForecastScore.objects.all().delete()
        QuestionOption.objects.update(happened=None)
        Question.objects.update(status="cancelled")
    later = ENDED_AT + DAY
    ran = run("check_resolutions", later)
    assert (ran["questions_resolved"], ran["forecasts_scored"]) == (1, Forecast.objects.count())
    resolved.refresh_from_db()
    assert (resolved.status, resolved.resolved_at) == ("resolved", later)
    assert run("check_resolutions", later + HOUR)["questions_resolved"] == 0


def test_void_option_is_told_apart_by_api_and_pages(resolved: Question, client: Client) -> None:
    row = client.get(f"/api/v1/questions/{resolved.pk}/").json()
    assert (row["status"], row["outcome"]) == ("resolved", [PLAYERS[4]])
    assert [option["happened"] for option in row["options"]] == [None, False, False, False, True]
    first_forecast = Forecast.objects.first()
    assert first_forecast is not None
    for address in (f"/questions/{resolved.pk}/", f"/forecasts/{first_forecast.pk}/"):
        options = [row[0] for row in page_rows(get_page(client, address)) if row[0].startswith("Player")]
        assert set(options) == {f"{PLAYERS[0]} cancelled", *PLAYERS[1:4], f"{PLAYERS[4]} happened"}
    _, void, open_row, *_ = page_rows(get_page(client, f"/questions/{resolved.pk}/"))
    assert (void[1:3], open_row[1:3]) == (["–", "–"], ["0.0 %", "100.0 %"])


def test_list_shows_an_option_with_a_price_before_a_void_one(venue: Venue, kalshi: Kalshi, client: Client) -> None:
    rows = kalshi.event(STRIKEOUTS, *PLAYERS[:2], exclusive=False)
    run("sync_markets", SUNDAY)
    run("run_forecasts", ASKED_AT)
    end(kalshi, rows, "scalar", "no")
    run("check_resolutions", ENDED_AT, skip_leaderboards=True)
    (listed,) = [row for row in page_rows(get_page(client, "/questions/")) if row[0].startswith(STRIKEOUTS)]
    assert (listed[1], listed[2]) == (f"{PLAYERS[1]} 0.0 %", "resolved Outcome: none")


def test_comparison_tells_a_void_option_from_an_open_one(
    kalshi: Kalshi, rows: list[dict[str, Any]], client: Client
) -> None:
    one, second = sorted(Family.objects.filter(releases__model_id__in=(GPT, GEMINI)).values_list("slug", flat=True))
    address = f"comparisons/{one}/{second}/"

    def shown() -> tuple[Any, Any, str]:
        (row,) = client.get(f"/api/v1/{address}").json()["disagreements"]
        page = get_page(client, f"/compare/{one}/{second}/")
        (cells,) = [cells for cells in page_rows(page) if len(cells) > 2 and cells[2] == PLAYERS[0]]
        return row["happened"], row["cancelled"], cells[-1]

    assert shown() == (None, False, "open")
    end(kalshi, rows, "scalar", "no", "no", "no", "yes")
    run("check_resolutions", ENDED_AT)
    assert shown() == (None, True, "cancelled")


def test_archive_of_a_void_option_is_proven_and_its_forgery_found(resolved: Question, tmp_path: Path) -> None:
    assert run("export_dataset", ENDED_AT + HOUR, out=tmp_path / "sound").code == 0
    for number, forged in enumerate((None, "true", "false")):
        folder = shutil.copytree(tmp_path / "sound", tmp_path / str(number))
        assert [row["happened"] for row in table_rows(folder, "question_options")] == [None, False, False, False, True]
        if forged:
            rewrite(folder, "question_options", lambda rows, text=forged: rows[0].update(happened=text))
        violations, _, _ = verify(folder)
        alone = [line for lines in violations.values() for line in lines]
        expected = f"question_options: the outcome of question {resolved.pk} is not that of its markets"
        assert (expected in verify_archive(folder).violations) == bool(forged)
        assert (expected in alone) == bool(forged) == bool(alone), alone
