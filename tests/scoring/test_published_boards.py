"""Boards as they were published: once an hour at most, never changed, at dated addresses that show the same ranks."""

import re
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from markets.models import Question
from scoring.exports.verification.verifier import verify_archive
from scoring.models import Leaderboard, PublishedBoard
from scoring.services.scores import compute_scores
from tests.commands import run
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    MarketFactory,
    QuestionFactory,
    SnapshotFactory,
    ask,
    bet,
    end_question,
    resolve,
)
from tests.markup import elements, get_page, visible_text
from tests.scoring.exports.archives import table_rows
from tests.scoring.exports.forgery import standalone_violations
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
GPT, GROK = "gpt-5.1", "grok-4"
FIRST = WEEK + 5 * DAY
API = "/api/v1/leaderboard/"


def answer(town: int, gpt: float, grok: float) -> Question:
    question = QuestionFactory(markets=[MarketFactory(question=f"Will it rain in town {town}?", category="Weather")])
    ask(question, {GPT: [gpt, 1 - gpt], GROK: [grok, 1 - grok]})
    return question


def change_the_lead() -> list[Question]:
    """GPT leads at FIRST; a day later Grok does."""
    early, late = [answer(town, 0.9, 0.6) for town in range(2)], [answer(town, 0.2, 0.9) for town in range(2, 8)]
    for question in early:
        end_question(question, "YES", at=FIRST)
    compute_scores(at=FIRST)
    for question in late:
        end_question(question, "YES", at=FIRST + DAY)
    compute_scores(at=FIRST + DAY)
    return [*early, *late]


lead_change = shared_rows(change_the_lead)


def published(**selection: str) -> Any:
    key = {"protocol": "forecast", "arm": "priced", "category": "", "methodology": "", "track": ""} | selection
    return PublishedBoard.objects.filter(**key).order_by("at")


def ranks(rows: list[dict[str, Any]]) -> list[str]:
    return [row["forecaster"] for row in rows if row["n"] and not row["reference"]]


def dated(client: Client, at: datetime, **query: str) -> Any:
    response = client.get(API, {"protocol": "forecast", "as_of": at.isoformat(), **query}, follow=True)
    assert response.status_code == 200, response.content
    return response.json()["results"]


def test_changed_board_is_published_once_an_hour_at_most() -> None:
    questions = [answer(town, 0.9, 0.6) for town in range(3)]
    for place, minutes in enumerate((0, 30, 61)):
        end_question(questions[place], "YES", at=FIRST + timedelta(minutes=minutes))
        compute_scores(at=FIRST + timedelta(minutes=minutes))
    assert [board.at for board in published()] == [FIRST, FIRST + timedelta(minutes=61)]
    compute_scores(at=FIRST + 5 * HOUR)  # nothing has changed
    assert published().count() == 2
    assert {board.category for board in published(category="Weather")} == {"Weather"}


def test_trading_board_by_category_is_published_where_its_bets_changed() -> None:
    """A return that a bet of another category moves is on the board of all alone."""
    markets = [MarketFactory(category=category) for category in ("Weather", "Weather", "Sports")]
    player = AgentFactory()
    for market in markets:
        bet(player, market, "YES", "500.00")
    resolve(markets[0], "YES", at=FIRST)
    question = answer(1, 0.9, 0.6)
    end_question(question, "YES", at=FIRST)  # a forecast board names the category
    compute_scores(at=FIRST)
    resolve(markets[2], "NO", at=FIRST + HOUR)
    compute_scores(at=FIRST + 2 * HOUR)

    def instants(category: str) -> list[datetime]:
        return [board.at for board in published(protocol="trading", arm="", category=category)]

    assert (instants(""), instants("Weather")) == ([FIRST, FIRST + 2 * HOUR], [FIRST])
    resolve(markets[1], "NO", at=FIRST + 3 * HOUR)
    compute_scores(at=FIRST + 4 * HOUR)
    assert instants("Weather") == [FIRST, FIRST + 4 * HOUR]


def test_linked_instants_are_those_from_which_on_a_selection_was_published(client: Client, settings: Any) -> None:
    """Weather from the second Sunday on, Sports from the third, agents never: no link leads to a 404."""
    settings.ARENA_CLOCK, settings.ARENA_DEMO = WEEK + 21 * DAY, True
    for week, category in ((1, "Weather"), (2, "Sports")):
        question = QuestionFactory(markets=[MarketFactory(category=category)])
        ask(question, {GPT: [0.9, 0.1], GROK: [0.6, 0.4]})
        end_question(question, "YES", at=WEEK + week * 7 * DAY)
        compute_scores(at=WEEK + week * 7 * DAY)
    for address, number in (
        ("/", 3), ("/forecasts/?arm=priced", 3), ("/forecasts/?category=Weather", 3),
        ("/forecasts/?category=Sports", 2), ("/agents/", 0),
    ):  # fmt: skip
        links = [link.attributes["href"] or "" for link in elements(get_page(client, address), ".filters a")]
        dated_links = [link for link in links if re.search("as_of=[0-9]", link)]
        assert len(dated_links) == number, address
        for link in dated_links:
            assert client.get(address.partition("?")[0] + link, follow=True).status_code == 200, link


def test_published_board_can_not_be_changed_and_a_correction_is_another(lead_change: list[Question]) -> None:
    before = published().values_list("at", "sha256")
    for change in (lambda: published().update(entries=[]), lambda: published().delete()):
        with pytest.raises(IntegrityError), transaction.atomic():
            change()
    first_two = list(before)
    end_question(answer(20, 0.5, 0.4), "NO", at=FIRST + 2 * DAY)
    compute_scores(at=FIRST + 2 * DAY)
    assert list(before.all())[:2] == first_two
    assert before.all().count() == 3


def test_date_leads_to_the_last_board_published_by_then(lead_change: list[Question], client: Client) -> None:
    assert ranks(dated(client, FIRST)) == [GPT, GROK]
    assert ranks(dated(client, FIRST + DAY)) == [GROK, GPT]
    between = {"protocol": "forecast", "as_of": (FIRST + HOUR).isoformat(), "fields": "forecaster"}
    redirect = client.get(API, between)
    assert redirect.status_code == 302
    exact = FIRST.isoformat().replace("+00:00", "Z").replace(":", "%3A")
    assert redirect["Location"] == f"{API}?protocol=forecast&as_of={exact}&fields=forecaster"
    for path in ("/", "/forecasts/", "/charts/scores.csv", "/leaderboard.csv"):
        page = client.get(path, {"as_of": f"{FIRST + HOUR:%Y-%m-%dT%H:%MZ}"})
        assert (page.status_code, page["Location"]) == (302, f"{path}?as_of={exact}"), path
        assert client.get(page["Location"]).status_code == 200
    early = (FIRST - DAY).isoformat()
    assert client.get(API, {"protocol": "forecast", "as_of": early}).status_code == 404
    assert client.get("/", {"as_of": early}).status_code == 404
    assert dated(client, FIRST + HOUR, category="Weather")[0]["n"] == 2


def test_dated_page_reads_what_was_published_alone(lead_change: list[Question], client: Client) -> None:
    address = f"/forecasts/?as_of={FIRST.isoformat().replace('+00:00', 'Z')}"
    first = [
        visible_text(row)
        for row in elements(get_page(client, address), "#ranking-table tbody tr, table.board tbody tr")
    ]
    Leaderboard.objects.all().delete()
    again = [
        visible_text(row)
        for row in elements(get_page(client, address), "#ranking-table tbody tr, table.board tbody tr")
    ]
    assert first
    assert first == again


def test_cited_address_shows_the_same_ranks(client: Client, lead_change: list[Question]) -> None:
    cohort = CohortFactory()
    for slug, side in ((GPT, "YES"), (GROK, "NO")):
        resolve(bet(AgentFactory(cohort=cohort, slug=slug), MarketFactory(), side, "400.00").market, "YES")
    compute_scores(at=WEEK + 40 * DAY)

    def ranking(address: str) -> list[str]:
        return [
            visible_text(cell) for cell in elements(get_page(client, address), "table.board tbody tr :is(.rank, th)")
        ]

    for path in ("/", "/forecasts/", "/trading/"):
        page = client.get(path).content.decode()
        (cited,) = re.findall(r"url = {http://testserver(/[^}]*as_of=\d{4}-\d\d-\d\d[^}]*)}", page)
        assert client.get(cited).status_code == 200, "it is the board's own instant"
        assert ranking(cited) == ranking(path) != []


def test_scores_of_a_past_instant_fill_it(lead_change: list[Question], client: Client) -> None:
    between = FIRST + 8 * HOUR
    Question.objects.filter(pk=lead_change[-1].pk).update(resolved_at=between)
    assert run("compute_scores", between)["published"] >= 1
    assert run("compute_scores", between)["published"] == 0, "it is there"
    assert ranks(dated(client, FIRST)) == [GPT, GROK]
    rows = {row["forecaster"]: row for row in dated(client, between)}
    assert rows[GPT]["n"] == 3
    assert [board.at for board in published()] == [FIRST, between, FIRST + DAY]


def test_past_trading_board_has_the_portfolios_of_its_instant(client: Client) -> None:
    agent = AgentFactory(slug=GPT)
    for days, cash in ((1, 11_000), (8, 9_000)):
        SnapshotFactory(agent=agent, taken_at=WEEK + days * DAY, cash=Decimal(cash))
    compute_scores(at=WEEK + 9 * DAY)
    compute_scores(at=WEEK + 2 * DAY)
    rows = client.get(API, {"as_of": (WEEK + 3 * DAY).isoformat()}, follow=True).json()["results"]
    assert {row["family"]: row["total_value"] for row in rows}[GPT] == "11000.00"


def test_archive_publishes_what_has_changed_within_the_hour(tmp_path: Path) -> None:
    questions = [answer(town, 0.9, 0.6) for town in range(3)]
    for place, minutes in enumerate((0, 20)):
        end_question(questions[place], "YES", at=FIRST + timedelta(minutes=minutes))
        compute_scores(at=FIRST + timedelta(minutes=minutes))
    assert published().count() == 1
    for folder in ("first", "second"):  # nothing has changed before the second
        assert run("export_dataset", FIRST + timedelta(minutes=30), out=tmp_path / folder).code == 0
        assert [board.at for board in published()] == [FIRST, FIRST + timedelta(minutes=30)]
    first, second = (table_rows(tmp_path / folder, "published_boards") for folder in ("first", "second"))
    assert {row["category"] for row in first if row["protocol"] == "forecast"} == {"", "Weather"}
    assert first == second
    for violations in (verify_archive(tmp_path / "first").violations, standalone_violations(tmp_path / "first")):
        assert [line for line in violations if "board" in line] == []
    assert run("export_dataset", FIRST + HOUR, day=FIRST, out=tmp_path / "day").code == 0
    assert table_rows(tmp_path / "day", "published_boards") == []
    assert published().count() == 2
