"""Consistency of forecasts before resolution: figures, endpoint and page."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models import Forecast
from markets.models import Question, QuestionEntry
from scoring.selectors.coherence import consistency_sentence
from scoring.services.scores import compute_scores
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.guards import guards_removed
from tests.markup import element, get_page, links, section, table_rows, visible_text

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
END = WEEK + timedelta(days=30)
GPT, GROK, KIMI, CLAUDE = "gpt-5.1", "grok-4", "kimi-k2", "claude-opus-4.5"
ADDRESS = "/api/v1/consistency/"


def figures(client: Client, **query: str) -> dict[str, Any]:
    """The figures of GPT's forecasts."""
    return next(row for row in client.get(ADDRESS, query).json()["rows"] if row["family"] == GPT)


def test_profit_of_sums_and_of_markets_that_exclude_each_other(client: Client) -> None:
    first, second = (MarketFactory(event_id="race", event_exclusive=True) for _ in range(2))
    ask(QuestionFactory(markets=[first]), {GPT: [0.7, 0.3]})
    ask(QuestionFactory(markets=[second]), {GPT: [0.5, 0.5]})
    ask(QuestionFactory(), {GPT: [0.6, 0.39]})
    compute_scores(at=END)
    row = figures(client)
    # 0.7 and 0.5 of at most one: 0.20 for two questions. 0.6 and 0.39: 0.01 for one.
    assert row["forecasts"] == 3
    assert row["profit"] == pytest.approx((0.2 + 0.01) / 3)
    assert row["checks"]["exclusions"] == {"checks": 1, "violations": 1, "profit": pytest.approx(0.2)}
    assert row["checks"]["sums"] == {"checks": 3, "violations": 1, "profit": pytest.approx(0.01 / 3)}
    assert row["profit_ci"] is None  # two events


def test_stated_numbers_count_and_not_those_that_were_scaled_to_sum_to_1(client: Client) -> None:
    ask(QuestionFactory(), {GPT: [0.405 / 1.005, 0.6 / 1.005]})
    with guards_removed(Forecast):
        Forecast.objects.update(normalised=True, stated={"YES": "0.405", "NO": "0.600"})
    compute_scores(at=END)
    assert figures(client)["profit"] == pytest.approx(0.005)


def test_market_that_was_asked_in_a_list_and_alone(client: Client) -> None:
    markets = [MarketFactory(event_id="race", event_exclusive=True) for _ in range(2)]
    ask(QuestionFactory(markets=markets), {GPT: [0.5, 0.3, 0.2]})
    ask(QuestionFactory(markets=markets[:1]), {GPT: [0.6, 0.4]})
    ask(QuestionFactory(markets=markets[1:]), {GPT: [0.9, 0.1]}, day=WEEK + DAY)  # on another day
    compute_scores(at=END)
    row = figures(client)
    assert row["checks"]["repeats"] == {"checks": 1, "violations": 1, "profit": pytest.approx(0.1)}
    assert row["profit"] == pytest.approx(0.1 / 3)


def test_nested_thresholds_of_one_event(client: Client) -> None:
    names = ("$100 or above", "$110 or above", "$90 or below")
    markets = [MarketFactory(event_id="price", event_exclusive=False, option=name) for name in names]
    for market, chance in zip(markets, (0.4, 0.55, 0.9), strict=True):
        ask(QuestionFactory(markets=[market]), {GPT: [chance, 1 - chance]})
    compute_scores(at=END)
    row = figures(client)
    assert row["checks"]["thresholds"] == {"checks": 1, "violations": 1, "profit": pytest.approx(0.15)}
    assert row["profit"] == pytest.approx(0.15 / 3)


def test_one_question_at_two_venues(client: Client) -> None:
    original, duplicate = QuestionFactory(), QuestionFactory(markets=[MarketFactory(source="kalshi")], source="kalshi")
    entry = ask(original, {GPT: [0.6, 0.4]})
    ask(duplicate, {GPT: [0.5, 0.5]})
    with guards_removed(QuestionEntry):
        QuestionEntry.objects.filter(pk=entry.pk).update(duplicate=duplicate)
    compute_scores(at=END)
    row = figures(client)
    assert row["checks"]["repeats"] == {"checks": 1, "violations": 1, "profit": pytest.approx(0.1)}
    assert row["profit"] == pytest.approx(0.05)


def race(number: int, day: int, **gaps: float) -> None:
    """Two markets of one event, with sums beyond 1 by family; the first market wins."""
    pair = [MarketFactory(event_id=f"race {number}", event_exclusive=True) for _ in range(2)]
    slugs = {"gpt": GPT, "grok": GROK, "kimi": KIMI, "claude": CLAUDE}
    for market, base in zip(pair, (0.8, 0.2), strict=True):
        answers = {}
        for name, gap in gaps.items():
            chance = base + (gap if base < 0.5 else 0)
            answers[slugs[name]] = [chance, 1 - chance]
        ask(QuestionFactory(markets=[market]), answers, day=WEEK + day * DAY)


def test_relation_to_the_brier_score_over_models(client: Client) -> None:
    for number in range(6):
        race(number, number, gpt=0.0, claude=0.05 + number / 100, kimi=0.3 + number / 100, grok=0.6)
    for place, question in enumerate(Question.objects.order_by("pk")):
        end_question(question, "YES" if place % 2 == 0 else "NO", at=WEEK + 10 * DAY)
    compute_scores(at=END)
    answer = client.get(ADDRESS).json()
    assert [row["family"] for row in answer["rows"]] == [GPT, CLAUDE, KIMI, GROK]
    assert answer["spearman"]["value"] == pytest.approx(1)
    assert (answer["spearman"]["models"], answer["spearman"]["events"]) == (4, 6)
    low, high = answer["rows"][1]["profit_ci"]
    assert 0 <= low < answer["rows"][1]["profit"] < high <= 1
    page = get_page(client, "/consistency/")
    text = visible_text(element(page, "figure.intervals"))
    assert "A risk-free portfolio gains $0.0000 to $0.3000 a question from a model’s forecasts" in text
    assert "when shown the market’s prices" in text
    for extension in ("csv", "png", "svg"):
        assert any(f"charts/profit.{extension}" in link for link in links(page))
        assert client.get(f"/consistency/charts/profit.{extension}").status_code == 200
    rows = table_rows(section(page, "checks"))
    assert any("Grok" in row[0] and "6 of 6 violated" in " ".join(row) for row in rows)


def test_relation_that_rests_on_few_events_with_a_profit_has_no_interval(client: Client) -> None:
    """Of six events three leave a profit: the order of the models would be that of two or three events."""
    for number in range(3):
        race(number, number, gpt=0.0, claude=0.04, kimi=0.06, grok=0.08)
    for number in range(3, 6):
        race(number, number, gpt=0.0, claude=-0.1, kimi=-0.15, grok=-0.2)
    for place, question in enumerate(Question.objects.order_by("pk")):
        end_question(question, "YES" if place % 2 == 0 else "NO", at=WEEK + 10 * DAY)
    compute_scores(at=END)
    spearman = client.get(ADDRESS).json()["spearman"]
    assert (spearman["value"], spearman["interval"]) == (pytest.approx(-0.2), None)
    assert "no relation to the Brier score can be told yet" in visible_text(get_page(client, "/consistency/"))


@pytest.mark.parametrize(
    ("value", "interval", "relation"),
    [
        (
            0.6,
            [0.2, 0.8],
            "; more consistent models have lower Brier scores (Spearman +0.60 over 7 models, 95 % interval",
        ),
        (-0.6, [-0.8, -0.2], "; more consistent models have higher Brier scores"),
        (0.6, [-0.1, 0.8], "; no relation to the Brier score is shown"),
        (1.0, None, "; no relation to the Brier score can be told yet."),
    ],
)
def test_sentence_claims_a_relation_where_its_interval_leaves_0_out(
    value: float, interval: list[float] | None, relation: str
) -> None:
    spearman = {"value": value, "interval": interval, "models": 7, "events": 40}
    figures = {"rows": [{"profit": 0.00002}, {"profit": 0.0123}], "spearman": spearman}
    start = "A risk-free portfolio gains less than $0.0001 to $0.0123 a question from a model’s forecasts"
    assert consistency_sentence(figures, "blindly").startswith(f"{start} blindly{relation}")


def test_as_of_counts_the_forecasts_made_by_then(client: Client) -> None:
    ask(QuestionFactory(), {GPT: [0.6, 0.39]})
    ask(QuestionFactory(), {GPT: [0.5, 0.5]}, day=WEEK + 3 * DAY)
    compute_scores(at=END)
    assert figures(client)["profit"] == pytest.approx(0.005)
    assert figures(client, as_of=(WEEK + DAY).date().isoformat())["profit"] == pytest.approx(0.01)


def test_unknown_parameters_and_an_empty_arena(client: Client) -> None:
    assert client.get(ADDRESS, {"arm": "x"}).status_code == 400
    assert client.get(ADDRESS, {"family": GPT}).status_code == 400
    assert client.get(ADDRESS).json()["rows"] == []
    assert "No figures yet" in visible_text(get_page(client, "/consistency/"))
    assert client.get("/consistency/?arm=x").status_code == 404
