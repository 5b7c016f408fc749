"""Questions, forecasts and their leaderboards as readers get them."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models import Forecast
from agents.models.task import PromptParts
from markets.models import Question
from scoring.models import Leaderboard
from scoring.services.scores import compute_scores
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.scoring.reads import statements

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)
DAY = timedelta(days=1)
GPT, GROK = "gpt-5.1", "grok-4"


def get(client: Client, path: str, answers: int = 200, /, **query: Any) -> Any:
    response = client.get(f"/api/v1/{path}", query)
    assert response.status_code == answers, response.content
    return response.json()


def names(rows: Any) -> list[int]:
    return [row["id"] for row in rows["results"]]


@pytest.fixture
def rain() -> Question:
    """Binary, asked on two days with prices and once without, happened."""
    market = MarketFactory(question="Will it rain?", category="Weather")
    question = QuestionFactory(markets=[market], rules="By the gauge.")
    ask(question, {GPT: [0.7, 0.3], GROK: [0.2, 0.8]}, asks={"YES": ("0.42", "0.61")})
    ask(question, {GPT: [0.9, 0.1]}, day=WEEK + DAY)
    ask(question, {GPT: [0.5, 0.5]}, arm="blind")
    return end_question(question, "YES")


@pytest.fixture
def cup() -> Question:
    """Of three teams, still open."""
    markets = [
        MarketFactory(question=name, prices={"YES": price, "NO": str(1 - float(price))}, event_id="cup")
        for name, price in (("A", "0.5"), ("B", "0.25"))
    ]
    question = QuestionFactory(markets=markets, text="Who wins the cup?", category="Sports")
    ask(question, {GPT: [0.4, 0.4, 0.2]})
    return question


def test_a_question_as_the_contract_names_it(client: Client, rain: Question) -> None:
    (row,) = get(client, "questions/")["results"]
    assert rain.market is not None
    assert row == {
        "id": rain.pk, "source": "polymarket", "event": rain.event_key, "market": rain.market_id,
        "question": "Will it rain?", "category": "Weather", "exclusive": True, "status": "resolved", "closes_at": None,
        "first_asked_at": "2026-03-08T00:05:00Z", "closed_at": "2026-04-07T00:00:00Z",
        "resolved_at": "2026-04-07T00:00:00Z", "outcome": "YES",
        "options": [
            {"name": "YES", "market": rain.market_id, "price": "0.400000", "no_price": "0.600000", "happened": True},
            {"name": "NO", "market": rain.market_id, "price": "0.600000", "no_price": "0.400000", "happened": False},
        ],
    }  # fmt: skip


def test_an_option_without_a_market_has_what_the_others_leave(client: Client, cup: Question) -> None:
    row = get(client, f"questions/{cup.pk}/", fields="options,market,outcome")
    assert (row["market"], row["outcome"]) == (None, None)
    assert [(option["name"], option["price"], option["no_price"]) for option in row["options"]] == [
        ("A", "0.500000", "0.500000"), ("B", "0.250000", "0.750000"), ("None of these", "0.250000", "0.750000"),
    ]  # fmt: skip
    assert row["options"][2]["market"] is None


def test_several_options_may_have_happened_where_they_do_not_exclude_each_other(client: Client) -> None:
    markets = [MarketFactory(question=name) for name in "ABC"]
    question = QuestionFactory(markets=markets, exclusive=False)
    end_question(question, "A", "C")
    assert get(client, f"questions/{question.pk}/")["outcome"] == ["A", "C"]


def test_one_question_tells_each_days_prices_and_what_everybody_said(client: Client, rain: Question) -> None:
    compute_scores(at=END)
    row = get(client, f"questions/{rain.pk}/")
    assert row["rules"] == "By the gauge."
    assert [day["day"] for day in row["days_asked"]] == ["2026-03-08T00:00:00Z", "2026-03-09T00:00:00Z"]
    assert row["days_asked"][0]["prices"]["YES"] == {"price": "0.4", "ask": "0.42", "no_ask": "0.61", "stale": False}
    forecasts_by_family = {(f["arm"], f["family"], f["made_at"][:10]): f for f in row["forecasts"]}
    assert len(forecasts_by_family) == 4
    first = forecasts_by_family["priced", GPT, "2026-03-08"]
    assert (first["probabilities"], first["brier"]) == ({"YES": 0.7, "NO": 0.3}, pytest.approx(0.09))
    assert first["rationale"] == "GPT-5.2 has its reasons."
    assert [difficulty["arm"] for difficulty in row["difficulties"]] == [
        "priced"
    ]  # in the other arm one model alone spoke


def test_a_forecast_as_the_contract_names_it(client: Client, cup: Question) -> None:
    (row,) = get(client, "forecasts/")["results"]
    forecast = Forecast.objects.get()
    assert {key: row[key] for key in ("id", "question", "forecaster", "family", "arm", "methodology")} == {
        "id": forecast.pk, "question": cup.pk, "forecaster": GPT, "family": GPT, "arm": "priced", "methodology": "v2",
    }  # fmt: skip
    assert row["probabilities"] == {"A": 0.4, "B": 0.4, "None of these": 0.2}
    assert (row["made_at"], row["brier"], row["normalised"]) == ("2026-03-08T00:05:00Z", None, False)


def test_one_forecast_shows_its_prompt_byte_for_byte_and_every_call(client: Client, cup: Question) -> None:
    forecast = Forecast.objects.select_related("elicitation__batch").get()
    row = get(client, f"forecasts/{forecast.pk}/")
    assert row["user_prompt"] == forecast.elicitation.user_prompt(PromptParts())
    assert row["system_prompt"] == forecast.elicitation.system_prompt
    assert row["stated"] == {"A": "0.4", "B": "0.4", "None of these": "0.2"}
    assert [call["model"] for call in row["calls"]] == ["openai/gpt-5.2"]


def test_the_leaderboard_of_the_protocol_holds_families_and_references(client: Client, rain: Question) -> None:
    compute_scores(at=END)
    body = get(client, "leaderboard/", protocol="forecast")
    rows = {row["forecaster"]: row for row in body["results"]}
    assert body["count"] == 7 + 5
    assert rows[GPT]["brier"] == pytest.approx((0.09 + 0.01) / 2)
    assert (rows[GPT]["family"], rows[GPT]["rank"], rows["market"]["family"]) == (GPT, 1, None)
    assert rows[GPT]["skill_percent"] == pytest.approx(80), "0.25 of equal probabilities, less 0.05"
    assert (rows["kimi-k2"]["brier"], rows["kimi-k2"]["skill_percent"]) == (None, None)
    blind = {row["forecaster"]: row for row in get(client, "leaderboard/", protocol="forecast", arm="blind")["results"]}
    assert blind[GPT]["brier"] == pytest.approx(0.25)
    of_weather = get(client, "leaderboard/", protocol="forecast", category="Weather", methodology="v2")
    assert of_weather["results"][0]["n"] == 1
    thin = get(client, "leaderboard/", protocol="forecast", fields="forecaster,alpha")
    assert set(thin["results"][0]) == {"forecaster", "alpha"}


def test_the_leaderboard_of_a_past_instant_knows_only_what_was_resolved_by_then(client: Client, rain: Question) -> None:
    compute_scores(at=END)
    later = QuestionFactory()
    ask(later, {GPT: [0.5, 0.5]})
    end_question(later, "YES", at=END + DAY)
    compute_scores(at=END + DAY)

    def first(**query: Any) -> Any:
        answer = client.get("/api/v1/leaderboard/", {"protocol": "forecast", **query}, follow=True)
        return next(row for row in answer.json()["results"] if row["forecaster"] == GPT)

    past = (END + DAY / 2).isoformat()
    assert (first()["n"], first(as_of=past)["n"]) == (2, 1)
    assert first(as_of=past)["brier"] == pytest.approx(0.05)
    assert first(as_of=(END + DAY).isoformat(), category="Politics")["n"] == 1


def test_one_leaderboard_holds_all_that_stands_beside_the_ranking(client: Client, rain: Question) -> None:
    compute_scores(at=END)
    rows = get(client, "forecast-leaderboards/", arm="priced", methodology="v2")["results"]
    assert {row["category"] for row in rows} == {None, "Weather"}
    leaderboard = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    row = get(client, f"forecast-leaderboards/{leaderboard.pk}/")
    assert row["entries"] == get(client, "leaderboard/", protocol="forecast")["results"]
    assert {"pairs", "curves", "agreement", "forecasts_and_trades"} <= set(row["report"])


def test_the_leaderboard_costs_the_same_queries_however_long(client: Client) -> None:
    def more(number: int) -> None:
        for _ in range(number):
            ask(QuestionFactory(), {GPT: [0.6, 0.4], GROK: [0.5, 0.5]})
        compute_scores(at=END)

    path = "leaderboard/?protocol=forecast"
    more(1)
    few = statements(get, client, path)
    more(3)
    assert statements(get, client, path) == few <= 8
