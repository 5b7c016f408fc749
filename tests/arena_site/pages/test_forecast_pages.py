"""Pages of the forecast leaderboard and of questions: recorded numbers, escaped text, counted queries."""

from datetime import timedelta

import pytest
from django.test import Client

from arena_site.pages.views.questions import DAYS_SHOWN
from markets.models import Question
from scoring.models import ForecastScore, Leaderboard, QuestionDifficulty
from scoring.services.scores import compute_scores
from tests.factories import WEEK, AgentFactory, MarketFactory, QuestionFactory, ask, bet, end_question
from tests.markup import count_queries, element, elements, get_page, links, section, visible_text
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)
DAY = timedelta(days=1)
GPT, GROK = "gpt-5.1", "grok-4"


def board() -> Leaderboard:
    return Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")


def create_questions() -> list[Question]:
    """Two families' forecasts of three questions in two categories; GPT also forecasts without prices and bets once."""
    questions = []
    agent = AgentFactory()
    for number, winner in enumerate(("YES", "NO", "YES")):
        market = MarketFactory(question=f"Will it rain in town {number}?", category=("Politics", "Sports")[number % 2])
        if number == 0:
            bet(agent, market, "YES", "1250.00")
        question = QuestionFactory(markets=[market])
        ask(question, {GPT: [0.7, 0.3], GROK: [0.4 + number / 10, 0.6 - number / 10]})
        ask(question, {GPT: [0.55, 0.45]}, arm="blind")
        questions.append(end_question(question, winner))
    compute_scores(at=END)
    return questions


questions = shared_rows(create_questions)


def test_an_arena_without_forecasts_has_its_page(client: Client) -> None:
    page = get_page(client, "/forecasts/")
    assert "No ranking yet" in visible_text(page)
    assert "None" not in visible_text(page)


def test_unresolved_question_ranks_nobody(client: Client) -> None:
    question = QuestionFactory()
    ask(question, {GPT: [0.7, 0.3]})
    compute_scores(at=WEEK)
    page = get_page(client, "/forecasts/")
    assert "No ranking yet" in visible_text(page)
    assert f"/questions/{question.pk}/" in links(get_page(client, "/questions/"))


def test_arms_and_categories_are_plain_links_to_their_own_numbers(client: Client, questions: list[Question]) -> None:
    page = get_page(client, "/forecasts/")
    assert {"?arm=blind", "?category=Sports"} <= set(links(page))
    blind = visible_text(section(get_page(client, "/forecasts/?arm=blind"), "ranking"))
    assert f"{(0.45**2 + 0.55**2 + 0.45**2) / 3:.3f}" in blind
    sports = visible_text(section(get_page(client, "/forecasts/?category=Sports"), "ranking"))
    assert "0.490" in sports  # (0.7 - 0)²
    assert "?arm=blind&category=Sports" in links(get_page(client, "/forecasts/?category=Sports"))


def test_diagrams_are_drawn_on_the_server_with_their_data(client: Client, questions: list[Question]) -> None:
    page = get_page(client, "/calibration/")
    panel = next(p for p in elements(page, "#stated-probabilities .diagram") if "GPT-5.2" in visible_text(p))
    assert elements(panel, ".bins line")
    assert elements(panel, '.bins path[d^="M"]')
    assert "3" in [visible_text(number) for number in elements(panel, ".numbers text")]
    assert "GPT-5.2 70.0 % 80.0 % 70.0 % 66.7 %" in visible_text(page, "#stated-probabilities table")
    page = get_page(client, "/forecasts/?gamma=1")
    stream = element(page, "#returns-section[open]")
    assert not elements(get_page(client, "/forecasts/"), "#returns-section[open]")
    assert [visible_text(link) for link in elements(stream, '[aria-current="true"]')] == ["1"]
    assert "3 +33.33 %" in visible_text(stream)  # (0.7 / 0.4 + 0.3 / 0.6 + 0.7 / 0.4) / 3
    assert not elements(page, "[style]")
    assert "nan" not in page.html.lower().replace("financ", "")


def test_a_question_shows_the_market_and_every_model_side_by_side(client: Client, questions: list[Question]) -> None:
    question, *_ = questions
    QuestionDifficulty.objects.filter(question=question).update(difficulty=-0.5)
    page = get_page(client, f"/questions/{question.pk}/")
    forecasts = visible_text(section(page, "forecasts"))
    assert "YES happened 40.0 % – 70.0 % 40.0 %" in forecasts
    assert "NO 60.0 % – 30.0 % 60.0 %" in forecasts
    for score in ForecastScore.objects.filter(forecast__question=question):
        assert f"{score.brier:.3f}" in forecasts
    assert "GPT-5.2 has its reasons." in forecasts
    assert "without prices" in forecasts
    assert "Outcome: YES" in visible_text(page)
    assert "Difficulty, with the market’s prices −0.500" in visible_text(page)


def test_an_open_question_shows_no_scores(client: Client) -> None:
    question = QuestionFactory()
    ask(question, {GPT: [0.7, 0.3]})
    text = visible_text(get_page(client, f"/questions/{question.pk}/"))
    assert "70.0 %" in text
    assert "Brier" not in text
    assert "None" not in text


def test_question_needs_one_more_query_however_many_its_other_days(client: Client, questions: list[Question]) -> None:
    def after(*days: int) -> int:
        for day in days:
            ask(question, {GPT: [0.5, 0.5], GROK: [0.5, 0.5]}, day=WEEK + day * DAY)
        return count_queries(client, f"/questions/{question.pk}/")

    question, *_ = questions
    one_day = after()
    assert after(*range(1, DAYS_SHOWN + 1)) == one_day + 1  # for the days that the charts alone show, all at once
    assert after(*range(DAYS_SHOWN + 1, DAYS_SHOWN + 4)) == one_day + 1 <= 14  # one looks for maintenance


def test_both_pages_link_to_their_json(client: Client, questions: list[Question]) -> None:
    question, *_ = questions
    assert f"/api/v1/forecast-leaderboards/{board().pk}/" in links(get_page(client, "/forecasts/"), "[href]")
    assert f"/api/v1/questions/{question.pk}/" in links(get_page(client, f"/questions/{question.pk}/"), "[href]")


@pytest.mark.parametrize(("length", "folds"), [(600, []), (1234, ["1,234 characters"])])
def test_long_rules_of_a_question_are_folded(client: Client, length: int, folds: list[str]) -> None:
    question = QuestionFactory(rules="x" * length)
    rules = section(get_page(client, f"/questions/{question.pk}/"), "rules")
    assert [fold.text() for fold in rules.css("summary")] == folds
    assert rules.css("blockquote")[0].text() == "x" * length


def test_question_with_many_options_folds_the_cheap_ones_and_its_purchases(client: Client) -> None:
    markets = [
        MarketFactory(question=f"Option {n}", prices={"YES": f"0.{n:02}", "NO": f"0.{100 - n}"}) for n in range(1, 12)
    ]
    question = QuestionFactory(markets=markets)
    agent = AgentFactory()
    for market in markets[:9]:
        bet(agent, market, amount="60.00")
    page = get_page(client, f"/questions/{question.pk}/")
    options, folded = section(page, "options").css("table")
    assert [row.text(strip=True) for row in options.css("tbody th")][:2] == ["None of these", "Option 11"]
    assert (len(options.css("tbody tr")), len(folded.css("tbody tr"))) == (8, 4)
    assert [fold.text() for fold in section(page, "options").css("summary")] == ["4 options with lower prices"]
    assert [fold.text() for fold in section(page, "trades").css("summary")] == ["The latest 9 purchases"]
