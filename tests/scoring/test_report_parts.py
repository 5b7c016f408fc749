"""Scores by days to the close, by cost and by release: figures by hand, pages, charts and API."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Family, Forecast, ModelCall, Release
from markets.models import Outcome, Question
from scoring.services.scores import compute_scores
from tests.factories import DECIDED, WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.markup import element, get_page, links, section, table_row, visible_text

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


def test_page_names_the_best_early_forecaster_with_its_condition(client: Client) -> None:
    six_questions()
    resolve_all()
    early = get(client, "time")["early"]
    assert (early["questions"], early["events"], early["entries"][0]["forecaster"]) == (6, 6, GPT)
    assert early["entries"][0]["brier_ci"][0] > 0
    page = get_page(client, "/time/")
    headline = visible_text(element(page, "p.answer"))
    assert headline.startswith(
        "GPT-5.2 forecasts best when shown the market’s prices, 14 days and more before the close"
    )
    assert "/time/" in links(element(page, "nav[aria-label=Forecasts]"))
    for name in ("by-days", "scores"):
        for extension in ("csv", "png", "svg"):
            assert client.get(f"/time/charts/{name}.{extension}").status_code == 200
    rows = client.get("/time/charts/by-days.csv").content.decode().splitlines()
    assert rows[0] == "series,bin,brier_score"
    assert any(row.startswith("GPT-5.2,4,") for row in rows)


def test_revision_is_the_mean_change_beside_the_price(client: Client) -> None:
    first, second, third = (rain(number, gpt=0.5) for number in (1, 2, 3))
    tell(first, 19, gpt=0.7)  # the price stands still
    start = float(Outcome.objects.get(market=first.market, side="YES").price or 0)
    for market, price in ((first.market, "0.8"), (second.market, "0.3"), (third.market, "0.3")):
        assert market is not None
        Outcome.objects.filter(market=market, side="YES").update(price=Decimal(price))
        Outcome.objects.filter(market=market, side="NO").update(price=1 - Decimal(price))
    tell(first, 18, gpt=0.6)
    tell(second, 18, gpt=0.4)
    tell(third, 18, gpt=0.4)
    resolve_all()
    (row,) = get(client, "time")["revisions"]
    assert (row["forecaster"], row["n"], row["revisions"], row["events"]) == (GPT, 3, 4, 3)
    # The first question: 0.2 and 0.1; the others 0.1. A question counts once.
    assert row["revision"] == pytest.approx((0.15 + 0.1 + 0.1) / 3)
    assert row["price_move"] == pytest.approx((abs(0.8 - start) / 2 + 2 * abs(0.3 - start)) / 3)
    # The first went against the price once it moved, the others its way.
    assert row["same_direction"] == pytest.approx(2 / 3)
    assert row["revision_ci"] is None


def malformed_try(forecast: Forecast, cost: str, source: str) -> None:
    """A call for the same batch that was billed all the same."""
    call = forecast.call
    ModelCall.objects.create(
        elicitation=call.elicitation, sequence=2, attempt=2, idempotency_key="again", model=call.model,
        prompt_sha256=call.prompt_sha256, result=ModelCall.Result.MALFORMED, tokens_input=500, tokens_output=0,
        cost_usd=Decimal(cost), cost_source=source, latency_ms=1500, sent_at=WEEK,
    )  # fmt: skip


# ── costs ─────────────────────────────────────────────────────────────────────────────────────────


def test_frontier_holds_models_that_no_other_beats_and_a_point_has_its_price(client: Client) -> None:
    six_questions()
    resolve_all()
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


# ── releases ──────────────────────────────────────────────────────────────────────────────────────


def date_releases(**days: date) -> None:
    for name, slug in (("gpt", GPT), ("kimi", KIMI), ("grok", GROK)):
        Release.objects.filter(family__slug=slug).update(released_on=days.get(name), knowledge_cutoff=None)


def test_trend_of_the_difference_to_the_market_falls_to_its_date_of_parity(client: Client) -> None:
    date_releases(grok=date(2025, 1, 1), kimi=date(2025, 7, 2), gpt=date(2026, 1, 1))
    for number in range(8):
        question, away = rain(number), number / 500
        tell(question, 15, grok=0.10 + away, kimi=0.25 - away, gpt=0.40 + away)
    resolve_all()
    report = get(client, "release-trends")
    rows = {row["family"]: row for row in report["rows"]}
    trend = report["trends"]["released_on"]
    differences = [rows[slug]["difference"] for slug in (GROK, KIMI, GPT)]
    price = float(Outcome.objects.filter(side="YES").values_list("price", flat=True)[0] or 0)
    grok = sum((0.9 - number / 500) ** 2 for number in range(8)) / 8
    assert differences[0] == pytest.approx(grok - (1 - price) ** 2)
    days = [0, 182, 365]
    mean = sum(days) / 3
    slope = sum((x - mean) * y for x, y in zip(days, differences, strict=True)) / sum((x - mean) ** 2 for x in days)
    assert trend["slope"] == pytest.approx(slope * 365.25)
    crossing = date(2025, 1, 1) + timedelta(days=round(mean - (sum(differences) / 3) / slope))
    assert abs(date.fromisoformat(trend["parity"]) - crossing) <= timedelta(days=1)
    low, high = trend["parity_ci"]
    assert low <= trend["parity"] <= high
    page = get_page(client, "/releases/")
    text = visible_text(element(page, "p.answer"))
    assert text.startswith("When shown the market’s prices, releases with a later date of release forecast better")
    parity = datetime.fromisoformat(trend["parity"]).replace(tzinfo=UTC)
    assert f"the line meets the market’s score on {parity.day} {parity:%b %Y}" in text
    for extension in ("csv", "png", "svg"):
        assert client.get(f"/releases/charts/released-on.{extension}").status_code == 200
    assert report["trends"]["knowledge_cutoff"] is None


def test_two_dates_have_no_trend_and_an_unknown_date_is_said(client: Client) -> None:
    date_releases(grok=date(2025, 1, 1), kimi=date(2025, 7, 2))
    for number in range(4):
        tell(rain(number), 15, grok=0.1, kimi=0.2, gpt=0.3 + number / 10)
    resolve_all()
    assert get(client, "release-trends")["trends"]["released_on"] is None
    page = get_page(client, "/releases/")
    assert "no trend by date of release can be told" in visible_text(page)
    assert "unknown" in table_row(section(page, "releases"), "GPT-5.2")


def test_cutoff_is_the_catalogues_else_as_declared(client: Client) -> None:
    Release.objects.filter(family__slug=GPT).update(
        knowledge_cutoff=date(2025, 6, 30), declared_cutoff=date(2025, 9, 30)
    )
    Release.objects.filter(family__slug=KIMI).update(declared_cutoff=date(2025, 8, 31))
    tell(rain(1), 15, gpt=0.3, kimi=0.3, grok=0.3)
    resolve_all()
    rows = {row["family"]: row for row in get(client, "release-trends")["rows"]}
    cutoffs = {slug: (row["knowledge_cutoff"], row["cutoff_source"]) for slug, row in rows.items()}
    assert cutoffs == {GPT: ("2025-06-30", "catalogue"), KIMI: ("2025-08-31", "declared"), GROK: (None, None)}


def test_forecast_later_than_a_year_after_its_releases_first_is_left_out(client: Client) -> None:
    first, second, third = rain(1), rain(2), rain(3)
    tell(first, 500, gpt=0.9)
    tell(second, 135, gpt=0.8)  # 365 days later
    tell(third, 134, gpt=0.1)
    resolve_all()
    (row,) = get(client, "release-trends")["rows"]
    assert (row["forecasts"], row["late_forecasts"]) == (2, 1)
    assert row["brier"] == pytest.approx((0.1**2 + 0.2**2) / 2)


def test_new_date_of_a_release_is_in_the_next_report(client: Client) -> None:
    tell(rain(1), 15, gpt=0.9)
    resolve_all()
    assert get(client, "release-trends")["rows"][0]["released_on"] is None
    date_releases(gpt=date(2025, 1, 1))
    compute_scores(at=CLOSE + 2 * DAY)
    assert get(client, "release-trends")["rows"][0]["released_on"] == "2025-01-01"


# ── all three ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["time", "costs", "release-trends"])
def test_unknown_choices_are_refused_and_the_past_is_as_it_was(client: Client, path: str) -> None:
    six_questions()
    resolve_all()
    page = f"/{'releases' if path == 'release-trends' else path}/"
    for query in ("arm=deaf", "methodology=v9", "mood=bad"):
        assert client.get(f"/api/v1/{path}/?{query}").status_code == 400
    assert client.get(f"{page}?arm=deaf").status_code == 404
    now, before = get(client, path), get(client, path, as_of=(CLOSE - DAY).isoformat())
    past_body = get(client, path, as_of=(CLOSE + 2 * DAY).isoformat())
    filled = "bins" if path == "time" else "rows"
    assert past_body[filled] == now[filled] != before[filled]
    assert "Nothing to compare yet" not in visible_text(get_page(client, page))
    past = visible_text(get_page(client, f"{page}?as_of={(CLOSE - DAY).date()}"))
    assert "Nothing to compare yet" in past


@pytest.mark.parametrize("page", ["/time/", "/costs/", "/releases/"])
def test_page_of_an_empty_arena(client: Client, page: str) -> None:
    assert "Nothing to compare yet" in visible_text(get_page(client, page))
    assert Family.objects.active().exists()
