"""Scores by days to the close and by cost: figures by hand, pages, charts and API."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Family, Forecast, ModelCall
from markets.models import Question
from scoring.services.scores import compute_scores
from tests.factories import DECIDED, WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.markup import element, get_page, section, table_row, visible_text
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
GPT, GROK, KIMI = "gpt-5.1", "grok-4", "kimi-k2"
CLOSE = WEEK + DECIDED + 20 * DAY
"""Of every question here."""


def rain(number: int, **chances: float) -> Question:
    """A question of its own event, asked 20 days before it closes, with each model's chance of YES."""
    question = QuestionFactory(markets=[MarketFactory(question=f"Will it rain in town {number}?")])
    tell(question, 20, **chances)
    return question


def tell(question: Question, days_ahead: int, *, arm: str = "priced", cost: str = "0.01", **chances: float) -> None:
    """Asks the question so many days before it closes."""
    answers = {slug.replace("_", "-"): [chance, 1 - chance] for slug, chance in chances.items()}
    vectors = {{"gpt": GPT, "grok": GROK, "kimi": KIMI}[name]: vector for name, vector in answers.items()}
    day, cost_source = CLOSE - DECIDED - days_ahead * DAY, ModelCall.CostSource.STATED
    ask(question, vectors, day=day, arm=arm, cost=cost, cost_source=cost_source)


def resolve_all() -> None:
    for question in Question.objects.filter(status="open"):
        end_question(question, "YES", at=CLOSE)
    compute_scores(at=CLOSE + DAY)


def get(client: Client, path: str, **query: str) -> Any:
    response = client.get(f"/api/v1/{path}/", query)
    assert response.status_code == 200, response.content
    return response.json()


def by_name(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["forecaster"]: row for row in rows}


def six_questions() -> None:
    """Six events: GPT is the best, Grok the worst; each answer of GPT costs 4 cents, Kimi's 2, Grok's 1."""
    for number in range(6):
        question = rain(number)
        tell(question, 15, gpt=0.9 - number / 100, cost="0.04")
        tell(question, 15, kimi=0.8 - number / 50, cost="0.02")
        tell(question, 15, grok=0.6 - number / 100, cost="0.01")
    resolve_all()


six = shared_rows(six_questions)


# ── time ──────────────────────────────────────────────────────────────────────────────────────────


def test_forecast_counts_in_the_bin_of_its_days_to_the_close(client: Client) -> None:
    question = rain(1, gpt=0.5)
    for days, chance in ((16, 0.6), (14, 0.7), (13, 1.0), (3, 0.9), (1, 0.8)):
        tell(question, days, gpt=chance)
    resolve_all()
    bins = get(client, "time")["bins"]
    scores = {(row["days_from"], row["days_to"]): by_name(row["entries"]).get(GPT) for row in bins}
    # Brier of YES at p: (1 - p)². Three days of one bin count as one question.
    far = scores[14, 30]
    assert far is not None
    assert (far["n"], far["forecasts"]) == (1, 3)
    assert far["brier"] == pytest.approx((0.5**2 + 0.4**2 + 0.3**2) / 3)
    near = [scores[key] and scores[key]["brier"] for key in ((1, 3), (3, 7), (7, 14))]
    assert near == pytest.approx([0.2**2, 0.1**2, 0.0])
    assert (scores[0, 1], scores[30, None]) == (None, None)
    assert far["brier_ci"] is None  # one event


def malformed_try(forecast: Forecast, cost: str, source: str) -> None:
    """A call for the same batch that was billed all the same."""
    call = forecast.call
    ModelCall.objects.create(
        elicitation=call.elicitation, sequence=2, attempt=2, idempotency_key="again", model=call.model,
        prompt_sha256=call.prompt_sha256, result=ModelCall.Result.MALFORMED, tokens_input=500, tokens_output=0,
        cost_usd=Decimal(cost), cost_source=source, latency_ms=1500, sent_at=WEEK,
    )  # fmt: skip


# ── costs ─────────────────────────────────────────────────────────────────────────────────────────


def test_frontier_holds_models_that_no_other_beats_and_a_point_has_its_price(six: None, client: Client) -> None:
    costs = get(client, "costs")
    rows = by_name(costs["rows"])
    gpt, kimi = sum((0.1 + n / 100) ** 2 for n in range(6)) / 6, sum((0.2 + n / 50) ** 2 for n in range(6)) / 6
    assert rows[GPT]["brier"] == pytest.approx(gpt)
    assert {name: row["cost_usd"] for name, row in rows.items()} == pytest.approx({GPT: 0.04, KIMI: 0.02, GROK: 0.01})
    assert (rows[GPT]["tokens_input"], rows[GPT]["tokens_output"]) == (1000, 200)
    assert [(step["cheaper"], step["better"]) for step in costs["steps"]] == [(GROK, KIMI), (KIMI, GPT)]
    assert costs["steps"][1]["usd_per_point"] == pytest.approx(0.01 * 0.02 / (kimi - gpt))
    page = get_page(client, "/costs/")
    assert f"${1000 * 0.01 * 0.02 / (kimi - gpt):.2f}" in table_row(section(page, "steps"), "GPT-5.2")
    sentence = visible_text(element(page, "p.answer"))
    assert sentence == (
        "By the mean scores so far 3 of 3 models are beaten by no other on both score and cost when shown the market’s"
        " prices: Grok 4.1 ($10.00), Kimi K2 ($20.00) and GPT-5.2 ($40.00) for 1,000 questions."
        " Of the 2 steps to a dearer model 2 are shown to lower the score."
    )
    for extension in ("csv", "png", "svg"):
        assert client.get(f"/costs/charts/score-by-cost.{extension}").status_code == 200


def test_dearer_and_worse_model_is_off_the_frontier(client: Client) -> None:
    question = rain(1)
    tell(question, 15, gpt=0.9, cost="0.01")
    tell(question, 15, grok=0.6, cost="0.02")
    resolve_all()
    costs = get(client, "costs")
    assert {name: row["efficient"] for name, row in by_name(costs["rows"]).items()} == {GPT: True, GROK: False}
    assert costs["steps"] == []


def test_cost_is_of_all_calls_of_the_batch_by_its_answers_and_of_resolved_questions_alone(client: Client) -> None:
    tell(rain(1), 15, gpt=0.9, cost="0.04")
    open_question = rain(2)
    tell(open_question, 15, gpt=0.9, cost="9")
    first = Forecast.objects.order_by("pk")[0]
    malformed_try(first, "0.02", ModelCall.CostSource.STATED)
    entry = ask(rain(3), day=WEEK)
    Forecast.objects.create(  # a second answer of the same batch
        elicitation=first.elicitation, call=first.call, entry=entry, question=entry.question, family=first.family,
        release=first.release, methodology=first.methodology, arm=first.arm, probabilities={"YES": 0.5, "NO": 0.5},
        stated={"YES": "0.5", "NO": "0.5"}, made_at=first.made_at,
    )  # fmt: skip
    end_question(Question.objects.get(text__contains="town 1"), "YES", at=CLOSE)
    compute_scores(at=CLOSE + DAY)
    (row,) = get(client, "costs")["rows"]
    assert (row["cost_usd"], row["tokens_input"], row["seconds"]) == pytest.approx((0.03, 750, 0.75))


def test_forecast_whose_cost_the_gateway_did_not_state_leaves_score_and_cost(client: Client) -> None:
    tell(rain(1), 15, gpt=0.9, cost="0.04")
    tell(rain(2), 15, gpt=0.5, cost="0.5")
    malformed_try(Forecast.objects.order_by("-pk")[0], "0.02", ModelCall.CostSource.COMPUTED)
    resolve_all()
    (row,) = get(client, "costs")["rows"]
    assert (row["brier"], row["cost_usd"], row["without_cost"]) == pytest.approx((0.1**2, 0.04, 1))
    assert "1 without a stated cost" in table_row(section(get_page(client, "/costs/"), "answers"), "GPT-5.2")


# ── both ─────────────────────────────────────────────────────────────────────────────────────


def test_model_that_shares_no_question_with_the_others_has_no_cost_of_a_score(client: Client) -> None:
    for number in range(6):
        tell(rain(number), 15, gpt=0.9, cost="0.04")
        tell(rain(10 + number), 15, kimi=0.8, cost="0.04")
        if number:
            tell(rain(20 + number), 15, gpt=0.9, grok=0.7, cost="0.01")
    resolve_all()
    rows = by_name(get(client, "costs")["rows"])
    assert {name: row["efficient"] for name, row in rows.items()} == {GPT: True, GROK: True}


@pytest.mark.parametrize("path", ["time", "costs"])
def test_unknown_choices_are_refused(six: None, client: Client, path: str) -> None:
    page = f"/{path}/"
    for query in ("arm=deaf", "methodology=v9", "mood=bad", "as_of=2026-04-01"):
        assert client.get(f"/api/v1/{path}/?{query}").status_code == 400
    assert client.get(f"{page}?arm=deaf").status_code == 404
    assert "Nothing to compare yet" not in visible_text(get_page(client, page))


@pytest.mark.parametrize("page", ["/time/", "/costs/"])
def test_page_of_an_empty_arena(client: Client, page: str) -> None:
    assert "Nothing to compare yet" in visible_text(get_page(client, page))
    assert Family.objects.active().exists()
