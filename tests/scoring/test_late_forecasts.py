"""Forecasts frozen at or after their question's close: on record and scored, and on no board."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.models import AgentVersion, Forecast
from arena_verifier.rows import is_before_close
from markets.models import Question, QuestionEntry
from markets.models.question import frozen_before_close
from scoring.exports.verification.verifier import verify_archive
from scoring.models import ForecastScore, PublishedBoard
from scoring.services.condition_differences import price_effect
from scoring.services.scores import compute_scores
from tests.commands import run
from tests.factories import DECIDED, WEEK, FamilyFactory, MarketFactory, QuestionFactory, ask, end_question
from tests.markup import get_page, visible_text
from tests.scoring.exports.archives import table_rows
from tests.scoring.exports.forgery import Cells, rewrite, standalone_violations

pytestmark = pytest.mark.django_db
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
FROZEN, END = WEEK + DECIDED, WEEK + 9 * DAY
GPT, STEADY = "gpt-5.1", "steady"
API = "/api/v1/"


@pytest.mark.parametrize(
    ("closes_at", "closed_at", "counts"),
    [
        (None, None, True),
        (FROZEN + SECOND, None, True),
        (FROZEN, None, False),
        (FROZEN - SECOND, None, False),
        (None, FROZEN + SECOND, True),
        (None, FROZEN, False),
        (FROZEN + DAY, FROZEN - SECOND, False),
        (FROZEN - SECOND, FROZEN + DAY, False),
        (FROZEN + DAY, FROZEN + SECOND, True),
    ],
)
def test_forecast_counts_where_it_was_frozen_before_the_close(
    closes_at: datetime | None, closed_at: datetime | None, counts: bool
) -> None:
    entry = ask(QuestionFactory(), {GPT: [0.9, 0.1]})
    Question.objects.update(closes_at=closes_at, closed_at=closed_at)
    assert QuestionEntry.objects.filter(frozen_before_close(), pk=entry.pk).exists() == counts
    assert Forecast.objects.counted().exists() == counts
    times = {"closes_at": closes_at, "closed_at": closed_at}
    texts = {name: time and time.isoformat(timespec="microseconds") for name, time in times.items()}
    assert is_before_close(texts, FROZEN.isoformat(timespec="microseconds")) == counts


@pytest.fixture
def late_question() -> Question:
    """Two questions that everybody answers; the second closed, as its venue says afterwards, before it was frozen."""
    agent = FamilyFactory(slug=STEADY, display_name="Steady", external=True, active=False, track="closed")
    AgentVersion.objects.create(family=agent, number=1, began_at=WEEK - DAY)
    questions = []
    for town in range(2):
        market = MarketFactory(question=f"Will it rain in town {town}?", category="Weather")
        question = QuestionFactory(markets=[market])
        for arm in ("priced", "blind"):
            ask(question, {GPT: [0.8, 0.2], STEADY: [0.7, 0.3]}, arm=arm)
        questions.append(question)
    Question.objects.filter(pk=questions[1].pk).update(closes_at=FROZEN)
    for question in questions:
        end_question(question, "YES", at=WEEK + 5 * DAY)
    compute_scores(at=END)
    return questions[1]


def results(client: Client, path: str, **query: str) -> dict[str, dict[str, Any]]:
    rows = client.get(API + path, {name: value for name, value in query.items() if value}).json()["results"]
    return {row.get("forecaster") or row["family"]: row for row in rows}


def test_late_forecast_is_on_no_board(late_question: Question, client: Client) -> None:
    assert ForecastScore.objects.filter(forecast__question=late_question).count() == 4, "it is scored"
    for arm, category in (("priced", ""), ("blind", ""), ("priced", "Weather"), ("blind", "Weather")):
        board = results(client, "leaderboard/", protocol="forecast", arm=arm, category=category)
        assert (board[GPT]["n"], board[GPT]["forecasts"], board["market"]["n"]) == (1, 1, 1), (arm, category)
    assert {board.entries[0]["n"] for board in PublishedBoard.objects.filter(protocol="forecast", track="")} == {1}
    agents = results(client, "agents-board/")
    assert (agents[STEADY]["answered"], agents[STEADY]["asked"], agents[GPT]["answered"]) == (1, 1, 1)
    (difference,) = client.get(API + "comparisons/conditions/").json()["results"]
    assert (difference["n"], difference["forecasts"]) == (1, 1)
    effect = price_effect()
    assert effect is None or effect["questions"] == 1
    text = visible_text(get_page(client, "/forecasts/"))
    assert "Left out. 1 resolved question, asked at or after the close. They stay on record." in text


def test_verifiers_leave_out_a_late_forecast_and_name_a_close_that_was_moved(
    late_question: Question, tmp_path: Path
) -> None:
    folder = tmp_path / "archive"
    assert run("export_dataset", END, out=folder).code == 0
    boards = [row for row in table_rows(folder, "leaderboard_forecast") if row["forecaster"] == GPT]
    assert {row["n"] for row in boards} == {1}

    def named() -> list[list[str]]:
        found = []
        for violations in (standalone_violations(folder), verify_archive(folder).violations):
            found.append([line for line in violations if line.startswith(("leaderboard", "published", "condition"))])
        return found

    assert named() == [[], []]

    def move(rows: Cells) -> None:
        for row in rows:
            row["closes_at"] = ""

    rewrite(folder, "questions", move, record=True)
    for lines in named():
        assert any("states n 1, computed is 2" in line for line in lines), lines
        assert any(line.startswith("leaderboard_agents") for line in lines), lines
