"""The models against the market: open disagreements, how often each was closer, leads by week."""

import csv
from datetime import datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.test import Client

from markets.models import Question
from scoring.selectors.forecast_boards import forecast_board
from scoring.services.scores import compute_scores
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.markup import element, elements, get_page, links, section, table_rows, visible_text
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
END = WEEK + 40 * DAY
GPT, GROK = "gpt-5.1", "grok-4"
LIST = "/api/v1/disagreements/"


def rain(town: int, price: str, day: datetime = WEEK, *, category: str = "Weather", **chances: float) -> Question:
    """A question on rain in a town, with the market's price of YES and what GPT and Grok give it."""
    market = MarketFactory(
        question=f"Will it rain in town {town}?", category=category, prices={"YES": price, "NO": str(1 - float(price))}
    )
    question = QuestionFactory(markets=[market])
    state(question, day, **chances)
    return question


def state(question: Question, day: datetime, arm: str = "priced", **chances: float) -> None:
    slugs = {"gpt": GPT, "grok": GROK}
    ask(question, {slugs[name]: [chance, 1 - chance] for name, chance in chances.items()}, arm=arm, day=day)


def rows(client: Client, **query: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = client.get(LIST, query).json()["results"]
    return listed


def play() -> list[Question]:
    """Three open questions, and three resolved ones on which GPT differed by 15 points, twice for the better."""
    past = [rain(1, "0.60", gpt=0.75), rain(2, "0.60", gpt=0.75, grok=0.60), rain(3, "0.60", gpt=0.75)]
    for question, winner in zip(past, ("YES", "YES", "NO"), strict=True):
        end_question(question, winner, at=WEEK + 5 * DAY)
    later = WEEK + 7 * DAY
    nearly = [rain(4, "0.50", later, gpt=0.66, grok=0.55), rain(5, "0.50", later, gpt=0.52, grok=0.20)]
    calm = rain(6, "0.50", later, category="Politics", gpt=0.51)
    compute_scores(at=END)
    return [*past, *nearly, calm]


record = shared_rows(play)


def test_open_questions_come_by_width_with_the_model_furthest_from_the_market(
    client: Client, record: list[Question]
) -> None:
    widest, second, third = rows(client)
    assert (widest["question"], widest["family"], widest["option"]) == (record[4].pk, GROK, "YES")
    assert (widest["probability"], widest["price"]) == (0.2, 0.5)
    assert widest["ensemble"] == pytest.approx((0.52 + 0.2) / 2)
    assert widest["gap"] == pytest.approx(0.3)
    assert widest["compared"] is None, "Grok has answered too few"
    assert (second["question"], second["family"]) == (record[3].pk, GPT)
    assert second["gap"] == pytest.approx(0.16)
    assert third["question"] == record[5].pk


def test_it_is_said_from_ten_questions_on_how_often_a_model_was_closer(client: Client, record: list[Question]) -> None:
    # Of GPT's three resolved questions it was closer on two; six more, on which it is closer, make nine.
    for number in range(10, 16):
        end_question(rain(number, "0.60", gpt=0.75), "YES", at=WEEK + 5 * DAY)
    compute_scores(at=END)
    assert {row["compared"] for row in rows(client)} == {None}
    tenth = rain(16, "0.60", gpt=0.60)  # as close as the market
    state(tenth, WEEK + DAY, gpt=0.60)
    end_question(tenth, "YES", at=WEEK + 5 * DAY)
    compute_scores(at=END)
    like = {row["question"]: row for row in rows(client, family=GPT)}[record[3].pk]
    assert [like[name] for name in ("compared", "model_closer", "market_closer")] == [10, 8, 1]
    page = section(get_page(client, "/disagreements/"), "closer")
    assert list(table_rows(page))[1:] == [["GPT-5.2", "10", "8", "1"]]


def test_list_refuses_what_it_does_not_know(client: Client, record: list[Question]) -> None:
    for query in ({"family": "nobody"}, {"resolved": "true"}, {"as_of": "2026-03-09"}, {"arm": "x"}):
        answer = client.get(LIST, query)
        assert answer.status_code == 400
        assert answer.json()["errors"].keys() == query.keys()
    assert rows(client, arm="blind") == []
    lines = list(csv.DictReader(StringIO(client.get(LIST, {"format": "csv"}).content.decode())))
    assert [line["probability"] for line in lines] == ["0.2", "0.66", "0.51"]


def test_page_shows_the_same_rows_and_a_chart_with_its_files(client: Client, record: list[Question]) -> None:
    page = get_page(client, "/disagreements/")
    assert visible_text(page, ".answer") == (
        "Grok 4.1 and the market disagree most on “ Will it rain in town 5? ”: 20 % against 50 % for “ YES ”, when"
        " shown the market’s prices."
    )
    head, *listed = table_rows(section(page, "open"))
    assert head[2:7] == ["Model", "Forecast", "Ensemble", "Market", "Difference"]
    assert listed[1][2:] == ["GPT-5.2", "66.0 %", "60.5 %", "50.0 %", "16.0 %"]
    title = visible_text(page, "figure h2")
    assert title == (
        "Models differ from the market’s prices by up to 30 points on questions without an outcome, when shown the"
        " market’s prices."
    )
    assert len(elements(page, ".intervals .mark")) == 3
    drawn = client.get("/disagreements/charts/largest.csv").content.decode().splitlines()
    assert drawn[:2] == ["question,probability,price", "Grok 4.1: Will it rain in town 5?,0.2,0.5"]
    for extension in ("png", "svg"):
        assert client.get(f"/disagreements/charts/largest.{extension}").status_code == 200
    assert "/disagreements/" in links(element(page, "nav[aria-label=Forecasts]"))
    assert client.get("/disagreements/?model=nobody").status_code == 404


def test_page_of_an_empty_arena_says_so(client: Client) -> None:
    assert "No question without an outcome" in visible_text(get_page(client, "/disagreements/"), ".answer")
    assert rows(client) == []


def test_question_says_who_did_better_than_the_market(client: Client, record: list[Question]) -> None:
    resolved = visible_text(get_page(client, f"/questions/{record[1].pk}/"), ".short-answer")
    assert resolved == (
        "GPT-5.2 gave 75 % to “ YES ”, the market 60 %, when shown the market’s prices on 8 Mar 2026 , the last"
        " day asked; it happened: 1 of 2 models did better than the market, by the mean Brier score over all days."
    )
    still_open = visible_text(get_page(client, f"/questions/{record[4].pk}/"), ".short-answer")
    assert still_open.startswith("Grok 4.1 gave 20 % to “ YES ”, the market 50 %, when shown the market’s prices")
    assert still_open.endswith("the widest difference of a model on the last day asked.")
    assert not elements(get_page(client, f"/questions/{QuestionFactory().pk}/"), ".short-answer")
    end_question(record[3])
    assert not elements(get_page(client, f"/questions/{record[3].pk}/"), ".short-answer"), "it was cancelled"


def test_leads_are_means_of_four_weeks_with_an_interval_from_four_events_on() -> None:
    for week in range(6):
        for town in range(2):
            question = rain(10 * week + town, "0.60", WEEK + 7 * week * DAY, gpt=0.70 + week / 100 + town / 50)
            end_question(question, "YES", at=WEEK + (7 * week + 3) * DAY)
    compute_scores(at=END + 20 * DAY)
    leads = forecast_board(parts=("leads",)).report["leads"]
    assert leads["ends"][0] == (WEEK + 7 * DAY).isoformat()
    assert len(leads["ends"]) == 6
    points = leads["forecasters"][GPT]
    assert points[0][1:] == [None, None, 2]
    # The last window begins with the third week, the first one left out is the second.
    chances = [0.70 + week / 100 + town / 50 for week in range(2, 6) for town in range(2)]
    assert points[-1][0] == pytest.approx(sum(0.16 - (1 - chance) ** 2 for chance in chances) / 8)
    assert points[-1][1] < points[-1][0] < points[-1][2]
    assert points[-1][3] == 8
    assert leads["forecasters"][GROK] == [None] * 6
