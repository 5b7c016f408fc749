"""Boards restricted to questions created after each model's knowledge cut-off."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models import Release
from scoring.services.scores import compute_scores
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.markup import get_page, links, visible_text
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("record")]
END = WEEK + timedelta(days=30)
GPT, GROK, KIMI = "gpt-5.1", "grok-4", "kimi-k2"
CUTOFF = date(2026, 1, 31)
BOARD = {"protocol": "forecast", "created": "after-cutoff"}


def question(created: datetime | None, **chances: float) -> None:
    new_question = QuestionFactory(markets=[MarketFactory(created_at=created)])
    slugs = {"gpt": GPT, "grok": GROK, "kimi": KIMI}
    ask(new_question, {slugs[name]: [chance, 1 - chance] for name, chance in chances.items()})
    end_question(new_question, "YES")


def play() -> None:
    Release.objects.filter(family__slug=GPT).update(knowledge_cutoff=CUTOFF)
    Release.objects.filter(family__slug=GROK).update(declared_cutoff=date(2026, 2, 28))
    question(datetime(2026, 1, 31, 23, tzinfo=UTC), gpt=0.9, grok=0.9, kimi=0.9)
    question(datetime(2026, 2, 1, tzinfo=UTC), gpt=0.8, grok=0.8, kimi=0.8)
    question(datetime(2026, 3, 1, tzinfo=UTC), gpt=0.7, grok=0.6, kimi=0.7)
    question(None, gpt=0.1, grok=0.1, kimi=0.1)
    compute_scores(at=END)


record = shared_rows(play)


def entries(client: Client, **query: str) -> dict[str, dict[str, Any]]:
    rows = client.get("/api/v1/leaderboard/", {**BOARD, **query}).json()["results"]
    return {row["forecaster"]: row for row in rows}


def test_questions_of_the_day_of_the_cutoff_and_undated_ones_do_not_count(client: Client) -> None:
    board = entries(client)
    assert (board[GPT]["n"], board[GROK]["n"], board[KIMI]["n"]) == (2, 1, 0)
    assert board[GPT]["brier"] == pytest.approx((0.2**2 + 0.3**2) / 2)
    assert board[GROK]["brier"] == pytest.approx(0.4**2)
    unrestricted_rows = client.get("/api/v1/leaderboard/", {"protocol": "forecast"}).json()["results"]
    assert {row["n"] for row in unrestricted_rows if row["forecaster"] in (GPT, GROK, KIMI)} == {4}


def test_list_with_an_undated_market_is_undated(client: Client) -> None:
    markets = [MarketFactory(created_at=created) for created in (datetime(2026, 3, 1, tzinfo=UTC), None)]
    listed = QuestionFactory(markets=markets)
    ask(listed, {GPT: [0.5, 0.3, 0.2]})
    end_question(listed, markets[0].question)
    compute_scores(at=END + timedelta(hours=1))
    assert entries(client)[GPT]["n"] == 2


def test_category_and_instant_are_refused(client: Client) -> None:
    assert client.get("/api/v1/leaderboard/", {**BOARD, "category": "Politics"}).status_code == 404
    assert client.get("/forecasts/?created=after-cutoff&category=Politics").status_code == 404
    assert client.get("/api/v1/leaderboard/", {**BOARD, "as_of": END.isoformat()}).status_code == 404


def test_cutoff_that_becomes_known_changes_the_board(client: Client) -> None:
    Release.objects.filter(family__slug=KIMI).update(knowledge_cutoff=CUTOFF)
    compute_scores(at=END + timedelta(hours=1))
    assert entries(client)[KIMI]["n"] == 2


def test_page_names_the_restriction_and_counts_what_it_leaves_out(client: Client) -> None:
    assert "?created=after-cutoff" in links(get_page(client, "/forecasts/"))
    text = visible_text(get_page(client, "/forecasts/?created=after-cutoff"))
    assert "GPT-5.2 2 of 4 (a date is unknown for 1)" in text
    assert "Kimi K2 0 of 4 (a date is unknown for 4)" in text


def test_other_values_and_the_trading_protocol_are_refused(client: Client) -> None:
    assert client.get("/api/v1/leaderboard/", {**BOARD, "created": "before"}).status_code == 400
    assert client.get("/api/v1/leaderboard/", {"created": "after-cutoff"}).status_code == 404
    assert client.get("/forecasts/?created=before").status_code == 404
