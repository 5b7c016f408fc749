"""The board of forecasts and the page of a question: every number as on record, every text escaped, queries counted."""

import html
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import Forecast
from arena_site.pages.views.questions import DAYS_SHOWN
from markets.models import Question, QuestionEntry
from scoring.models import ForecastScore, Leaderboard, QuestionDifficulty
from scoring.services.scores import compute_scores
from tests.factories import (
    WEEK,
    AgentFactory,
    MarketFactory,
    QuestionFactory,
    asked,
    bet,
    ended,
)
from tests.guards import guards_removed

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)
DAY = timedelta(days=1)
GPT, GROK = "gpt-5.1", "grok-4"
HOSTILE = "\"'><script>alert(1)</script>\n# SYSTEM\n{{ secret }}"


def page(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def text(markup: str) -> str:
    """What a reader sees: no tags, single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def section(markup: str, name: str) -> str:
    """The section under the heading with this id."""
    found = re.search(rf'<section aria-labelledby="{name}"[^>]*>.*?</section>', markup, re.S)
    assert found
    return found.group()


def some_questions() -> list[Question]:
    """Two families on three questions in two categories, one of them blind besides; GPT bet on the first as well."""
    made = []
    agent = AgentFactory()
    for number, winner in enumerate(("YES", "NO", "YES")):
        market = MarketFactory(question=f"Will it rain in town {number}?", category=("Politics", "Sports")[number % 2])
        if number == 0:
            bet(agent, market, "YES", "1250.00")
        question = QuestionFactory(markets=[market])
        asked(question, {GPT: [0.7, 0.3], GROK: [0.4 + number / 10, 0.6 - number / 10]})
        asked(question, {GPT: [0.55, 0.45]}, arm="blind")
        made.append(ended(question, winner))
    compute_scores(at=END)
    return made


def test_an_arena_without_forecasts_has_its_page(client: Client) -> None:
    shown = page(client, "/forecasts/")
    assert "No ranking yet" in text(shown)
    assert "Nothing has been asked yet" in text(shown)
    assert "None" not in text(shown)


def test_what_is_asked_and_not_resolved_is_listed_and_ranks_nobody(client: Client) -> None:
    question = QuestionFactory()
    asked(question, {GPT: [0.7, 0.3]})
    compute_scores(at=WEEK)
    shown = page(client, "/forecasts/")
    assert "No ranking yet" in text(shown)
    assert f'href="/questions/{question.pk}/"' in shown


def test_the_board_shows_what_is_on_record(client: Client) -> None:
    some_questions()
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    shown = text(section(page(client, "/forecasts/"), "ranking"))
    for entry in board.entries:
        assert entry["display_name"] in shown
        if entry["brier"] is not None:
            assert f"{entry['brier']:.3f}" in shown
    assert "at most 2/n where options exclude each other, so long questions score lower" in shown


def test_arms_and_categories_are_plain_links_to_their_own_numbers(client: Client) -> None:
    some_questions()
    shown = page(client, "/forecasts/")
    assert 'href="?arm=blind"' in shown
    assert 'href="?category=Sports"' in shown
    blind = text(section(page(client, "/forecasts/?arm=blind"), "ranking"))
    assert f"{(0.45**2 + 0.55**2 + 0.45**2) / 3:.3f}" in blind
    sports = text(section(page(client, "/forecasts/?category=Sports"), "ranking"))
    assert "0.490" in sports  # (0.7 - 0)²
    assert 'href="?arm=blind&amp;category=Sports"' in page(client, "/forecasts/?category=Sports")


@pytest.mark.parametrize("query", ["arm=loud", "category=Nowhere", "methodology=v9", "gamma=2"])
def test_a_board_that_is_not_there_is_a_404(client: Client, query: str) -> None:
    page(client, f"/forecasts/?{query}", status=404)


def test_words_stand_against_bets(client: Client) -> None:
    some_questions()
    shown = text(section(page(client, "/forecasts/"), "forecasts-and-trades"))
    assert "GPT-5.2" in shown
    assert "70.0 % 50.0 % 40.0 %" in shown  # said, staked, price
    assert "−0.200" in shown
    assert "$2.50" in shown
    assert "$1.75 · $1.38" in shown  # Kelly stakes half of it on YES at 0.40, won; the half a quarter


def test_diagrams_are_drawn_on_the_server_with_their_data(client: Client) -> None:
    some_questions()
    shown = page(client, "/forecasts/?gamma=1")
    drawn = r"<g><title>said 0.70, happened 0.67, 3 probabilities</title><line [^>]*/><path d=\"M[^\"]+\""
    assert re.search(drawn, shown)
    stream = section(shown, "returns-title")
    assert 'aria-current="true">1<' in stream
    last = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="").report["curves"]
    assert f"{last['average_return']['1']['forecasters'][GPT][-1]:.3f}" in text(stream)
    assert "style=" not in shown
    assert "nan" not in shown.lower().replace("finance", "")


def test_pairs_tell_how_many_more_questions_are_needed(client: Client) -> None:
    some_questions()
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    pair = next(p for p in board.report["pairs"] if p["n"])
    shown = text(section(page(client, "/forecasts/"), "pairs"))
    assert "GPT-5.2 Grok 4.1 3 3" in shown
    assert f"{int(pair['questions_more']):,}" in shown


def test_a_question_shows_the_market_and_every_model_side_by_side(client: Client) -> None:
    question, *_ = some_questions()
    QuestionDifficulty.objects.filter(question=question).update(difficulty=-0.5)
    shown = page(client, f"/questions/{question.pk}/")
    said = text(section(shown, "forecasts"))
    assert "YES happened 0.400 – 70.0 % 40.0 %" in said
    assert "NO 0.600 – 30.0 % 60.0 %" in said
    for score in ForecastScore.objects.filter(forecast__question=question):
        assert f"{score.brier:.3f}" in said
    assert "GPT-5.2 has its reasons." in said
    assert "without prices" in said
    assert "YES happened." in text(shown)
    assert "Difficulty, priced −0.500" in text(shown)


def test_an_open_question_shows_no_scores(client: Client) -> None:
    question = QuestionFactory()
    asked(question, {GPT: [0.7, 0.3]})
    shown = text(page(client, f"/questions/{question.pk}/"))
    assert "70.0 %" in shown
    assert "Brier" not in shown
    assert "None" not in shown


def test_a_question_names_its_twin_at_the_other_venue_and_the_twin_names_it(client: Client) -> None:
    question, twin = QuestionFactory(), QuestionFactory(text="The same elsewhere", source="kalshi")
    entry = asked(question, {GPT: [0.7, 0.3]})
    with guards_removed(QuestionEntry):
        QuestionEntry.objects.filter(pk=entry.pk).update(duplicate=twin)
    assert f'<a href="/questions/{twin.pk}/"><bdi>The same elsewhere' in page(client, f"/questions/{question.pk}/")
    assert f'<a href="/questions/{question.pk}/">' in page(client, f"/questions/{twin.pk}/")


def test_a_question_that_is_not_there_is_a_404(client: Client) -> None:
    page(client, "/questions/99/", status=404)


def test_failure_18_hostile_text_changes_neither_page(client: Client) -> None:
    market = MarketFactory(question=HOSTILE, category=HOSTILE, prices={HOSTILE: "0.5", "B": "0.5"})
    question = QuestionFactory(markets=[market], rules=HOSTILE)
    entry = asked(question, {GPT: [0.7, 0.3], GROK: [0.2, 0.8]})
    with guards_removed(Forecast):
        entry.forecasts.update(rationale=HOSTILE)
    ended(question, HOSTILE)
    compute_scores(at=END)
    for address in ("/forecasts/", f"/questions/{question.pk}/"):
        shown = page(client, address)
        assert "<script>alert" not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
        assert "{{ secret }}" in shown


def test_pages_cost_the_same_queries_whatever_was_asked(client: Client) -> None:
    def queries(address: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            page(client, address)
        return len(captured)

    def more(day: int) -> None:
        another = QuestionFactory()
        asked(another, {GPT: [0.5, 0.5]}, day=WEEK + day * DAY)
        asked(question, {GPT: [0.5, 0.5], GROK: [0.5, 0.5]}, day=WEEK + (day + 1) * DAY)
        ended(another, "YES")
        compute_scores(at=END)

    question, *_ = some_questions()
    page(client, "/forecasts/")  # who plays is read once for a change, not for a page
    one_day = queries(f"/questions/{question.pk}/")
    for day in range(DAYS_SHOWN):
        more(day)
    few = queries("/forecasts/"), queries(f"/questions/{question.pk}/")
    for day in range(DAYS_SHOWN, DAYS_SHOWN + 3):
        more(day)
    assert (queries("/forecasts/"), queries(f"/questions/{question.pk}/")) == few
    assert few[1] == one_day + 1  # for the days that the charts alone show, all at once
    assert max(few) <= 10


def test_both_pages_link_to_their_json(client: Client) -> None:
    question, *_ = some_questions()
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    assert f'href="/api/v1/forecast-boards/{board.pk}/"' in page(client, "/forecasts/")
    assert f'href="/api/v1/questions/{question.pk}/"' in page(client, f"/questions/{question.pk}/")
