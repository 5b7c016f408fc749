"""Lists of markets, questions and decisions by search, filter, order and page; the search of the whole site."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from markets.services.question_resolution import resolve_questions
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    QuestionFactory,
    ask,
    bet,
    resolve,
    sale,
)
from tests.markup import count_queries, element, elements, get_page, links, section, table_row, visible_text
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
GPT, GROK = "gpt-5.1", "grok-4"
RAIN, CUP, COLD = "Will it rain in Orsa?", "Who wins the cup?", "Colder tomorrow?"


def create_rows() -> None:
    """A market that GPT sold and a question on it, a resolved one that Grok bet on, one at Kalshi, four decisions."""
    rain = MarketFactory(question=RAIN, category="Weather", slug="rain", closes_at=WEEK + 9 * DAY)
    cup = MarketFactory(
        question=CUP, category="Sports", prices={"Ada": "0.5", "Bo": "0.3", "Cy": "0.1"}, closes_at=WEEK + 2 * DAY
    )
    cold = MarketFactory(question=COLD, category="Weather", source="kalshi", external_id="KXCOLD-26")
    ask(QuestionFactory(markets=[rain]), {GPT: [0.7, 0.3], GROK: [0.6, 0.4]})
    ask(QuestionFactory(markets=[cup], first_asked_at=WEEK + 3 * DAY), {GPT: [0.5, 0.3, 0.2]}, day=WEEK + 3 * DAY)
    ask(QuestionFactory(markets=[cold], source="kalshi", first_asked_at=WEEK - DAY), day=WEEK - DAY)
    cohort = CohortFactory()
    gpt, grok = AgentFactory(slug=GPT, cohort=cohort), AgentFactory(slug=GROK, cohort=cohort)
    position = bet(gpt, rain, "YES", "1000.00").position
    sale(position, "100", week=2)
    bet(grok, cup, "Bo", "500.00")
    DecisionFactory(agent=grok, week=2, missed=True)
    resolve(cup, "Bo", at=WEEK + 4 * DAY)
    resolve_questions(at=WEEK + 4 * DAY)


rows = shared_rows(create_rows)


def found(client: Client, address: str) -> list[str]:
    """The names of the rows of a list, in order."""
    return [visible_text(link) for link in elements(get_page(client, address), "th[scope=row] > a")]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=rain+ORSA", [RAIN]),
        ("q=%00", [RAIN, CUP, COLD]),
        ("played=bet", [RAIN, CUP]),
        ("played=held", []),
        ("played=asked", []),
        ("model=grok-4", [CUP]),
        ("status=resolved", [CUP]),
        ("category=Sports", [CUP]),
        ("source=kalshi", [COLD]),
        ("closes_from=2026-03-11&closes_to=2026-03-17", [RAIN]),
        ("closes_to=2026-03-10", [CUP]),
        ("sort=closes", [CUP, RAIN, COLD]),
        ("sort=-closes", [RAIN, CUP, COLD]),
        ("sort=-question", [RAIN, CUP, COLD]),
        ("sort=volume", [COLD, CUP, RAIN]),
        ("sort=-resolved&page=nine", [CUP, COLD, RAIN]),
        ("category=Sports&q=rain", []),
    ],
)
@pytest.mark.usefixtures("rows")
def test_markets_are_searched_filtered_and_sorted(client: Client, query: str, names: list[str]) -> None:
    assert found(client, f"/markets/?{query}") == names
    if not names:
        assert "No markets match." in visible_text(get_page(client, f"/markets/?{query}"))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("", [CUP, RAIN, COLD]),
        ("q=tomorrow", [COLD]),
        ("status=resolved", [CUP]),
        ("category=Weather", [RAIN, COLD]),
        ("source=kalshi", [COLD]),
        ("model=grok-4", [RAIN]),
        ("asked_from=2026-03-08&asked_to=2026-03-08", [RAIN]),
        ("closes_to=2026-03-10", []),
        ("sort=asked", [COLD, RAIN, CUP]),
        ("sort=question", [COLD, CUP, RAIN]),
    ],
)
@pytest.mark.usefixtures("rows")
def test_questions_are_searched_filtered_and_sorted(client: Client, query: str, names: list[str]) -> None:
    assert found(client, f"/questions/?{query}") == names


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("sort=week", ["GPT-5.2 1", "Grok 4.1 1", "GPT-5.2 2", "Grok 4.1 2"]),
        ("model=grok-4&sort=week", ["Grok 4.1 1", "Grok 4.1 2"]),
        ("action=SELL", ["GPT-5.2 2"]),
        ("action=fallback", []),
        ("status=missed", ["Grok 4.1 2"]),
        ("week=2&status=completed", ["GPT-5.2 2"]),
        ("cohort=1&week=1&sort=model", ["GPT-5.2 1", "Grok 4.1 1"]),
        ("from=2026-03-15&to=2026-03-15", ["GPT-5.2 2"]),
        ("q=no+such+words", []),
    ],
)
@pytest.mark.usefixtures("rows")
def test_decisions_are_searched_filtered_and_sorted(client: Client, query: str, names: list[str]) -> None:
    rows = found(client, f"/decisions/?{query}")
    assert rows == [f"{name} , cohort 1, week {week}" for name, _, week in (text.rpartition(" ") for text in names)]


def test_decisions_are_found_by_their_reasoning(client: Client) -> None:
    DecisionFactory(agent=AgentFactory(slug=GPT), reasoning="The polls are stale.")
    DecisionFactory(agent=AgentFactory(slug=GROK), reasoning="The weather is fine.")
    assert found(client, "/decisions/?q=STALE+polls") == ["GPT-5.2 , cohort 1, week 1"]


@pytest.mark.parametrize(
    "address",
    [
        *(f"/markets/?{query}" for query in ("status=lively", "sort=luck", "played=never", "source=moon")),
        *(f"/markets/?{query}" for query in ("category=Nothing", "model=hal-9000", "closes_from=tomorrow")),
        *(f"/questions/?{query}" for query in ("status=lively", "model=hal-9000", "asked_to=2026-02-30")),
        *(f"/decisions/?{query}" for query in ("cohort=9", "week=x", "action=BUY", "status=open", "to=8.3.2026")),
    ],
)
def test_unknown_filter_value_is_a_404_that_names_it(client: Client, address: str) -> None:
    page = get_page(client, address, status=404)
    path, _, query = address.partition("?")
    assert f"{query} is not" in visible_text(page)
    assert "There is no page" not in visible_text(page)
    assert path in links(page, "main a")


def test_a_list_is_paged_and_keeps_its_filters(client: Client) -> None:
    for number in range(51):
        MarketFactory(question=f"Question {number}?")
    first = get_page(client, "/markets/?status=active&sort=-closes")
    assert "Question 50?" in visible_text(first)
    assert links(first, "a[rel=next]") == ["?status=active&sort=-closes&page=2"]
    assert found(client, "/markets/?status=active&sort=-closes&page=2") == ["Question 0?"]
    assert found(client, "/markets/?status=active&sort=-closes&page=99") == ["Question 0?"]
    assert links(get_page(client, "/markets/?page=2"), "link[rel=canonical]") == ["http://testserver/markets/?page=2"]
    assert links(first, "link[rel=canonical]") == ["http://testserver/markets/?status=active"]


@pytest.mark.usefixtures("rows")
def test_form_holds_what_was_chosen_and_headings_sort_both_ways(client: Client) -> None:
    page = get_page(client, "/markets/?q=o&category=Sports&sort=closes")
    form = element(page, "main form.filters")
    assert (form.attributes["method"], "action" in form.attributes) == ("get", False)
    assert element(form, "input[name=q]").attributes["value"] == "o"
    assert [option.attributes["value"] for option in elements(form, "option[selected]")] == ["Sports"]
    assert element(form, "input[type=hidden]").attributes == {"type": "hidden", "name": "sort", "value": "closes"}
    assert element(page, "th[aria-sort]").attributes["aria-sort"] == "ascending"
    assert links(page, "th[aria-sort] a") == ["?category=Sports&sort=-closes&q=o"]
    assert "?category=Sports&q=o" in links(page, "thead a")  # by volume, the default


@pytest.mark.usefixtures("rows")
def test_rows_show_prices_outcomes_and_their_venues(client: Client) -> None:
    assert table_row(get_page(client, "/markets/"), RAIN).startswith(
        f"{RAIN} Weather · Polymarket YES 40.0 % NO 60.0 %"
    )
    resolved = table_row(get_page(client, "/markets/"), CUP)
    assert "Ada 0.0 % Bo 100.0 % and 1 more final resolved Outcome: Bo" in resolved
    assert "https://polymarket.com/market/rain" in links(get_page(client, "/markets/"))
    questions = get_page(client, "/questions/")
    assert "Bo 100.0 % and 2 more resolved Outcome: Bo" in table_row(questions, CUP)
    assert {"https://polymarket.com/market/rain", "https://kalshi.com/markets/kxcold"} <= set(links(questions))


def test_search_finds_a_question_by_its_option_a_model_and_a_cohort(client: Client) -> None:
    CohortFactory.create_batch(2)
    question = QuestionFactory(text="Who wins?", markets=[MarketFactory(question="Aleš Novotny"), MarketFactory()])
    ask(question, {GPT: [0.5, 0.3, 0.2]})
    assert f"/questions/{question.pk}/" in links(get_page(client, "/search/?q=who+NOVOTNY"), "main a")
    assert f"/questions/{question.pk}/" in links(get_page(client, "/questions/?q=novotny"), "main a")
    assert "/models/gpt-5.2/" in links(get_page(client, "/search/?q=gpt"), "main a")
    assert links(section(get_page(client, "/search/?q=Cohort+2"), "cohorts"), "a") == ["/cohorts/2/"]
    assert len(links(section(get_page(client, "/search/?q=cohorts"), "cohorts"), "a")) == 2
    assert not elements(get_page(client, "/search/?q=cohort+22"), "#cohorts")


@pytest.mark.parametrize("address", ["/decisions/", "/models/gpt-5.2/"])
def test_lists_of_decisions_name_markets_and_stakes(client: Client, address: str) -> None:
    market = MarketFactory(question="Will it hail?")
    bet(AgentFactory(), market, "YES", "321.00")
    trade = element(get_page(client, address), "main .trade")
    assert visible_text(trade) == "$321.00 on YES : Will it hail?"
    assert links(trade, "a") == [f"/markets/{market.pk}/"]


@pytest.mark.usefixtures("rows")
def test_site_search_counts_each_kind_and_leads_to_the_lists(client: Client) -> None:
    header = element(get_page(client, "/"), "header form[role=search]")
    assert (header.attributes["action"], header.attributes["method"]) == ("/search/", "get")
    page = get_page(client, "/search/?q=orsa+RAIN")
    assert "0 models, 1 market and 1 question match “ orsa RAIN ”" in visible_text(page)
    assert {"/markets/?q=orsa%20RAIN", "/questions/?q=orsa%20RAIN"} <= set(links(page))
    assert element(page, "header input[name=q]").attributes["value"] == "orsa RAIN"
    assert "/models/gpt-5.2/" in links(get_page(client, "/search/?q=openai"), "main a")
    assert "0 models, 0 markets and 0 questions" in visible_text(get_page(client, "/search/?q=zebra"))
    get_page(client, "/search/?q=%00")


@pytest.mark.parametrize(
    ("address", "most"),
    [
        ("/markets/?q=o&category=Weather&model=gpt-5.1&sort=closes", 8),
        ("/questions/?q=o&category=Weather&model=gpt-5.1&sort=closes", 8),
        ("/decisions/?q=e&model=gpt-5.1&cohort=1&week=1&sort=week", 6),
        ("/search/?q=o", 7),
    ],
)
@pytest.mark.usefixtures("rows")
def test_lists_need_few_queries_whatever_is_asked_for(client: Client, address: str, most: int) -> None:
    assert count_queries(client, address) == most


def test_cohorts_and_the_results_of_a_family_come_in_pages_newest_first(client: Client) -> None:
    for _ in range(51):
        AgentFactory(slug=GPT)
    addresses = ("/cohorts/", f"/models/{GPT}/")
    newest = [found(client, address) for address in addresses]
    assert [names[:2] for names in newest] == [["Cohort 51", "Cohort 50"]] * 2
    assert ["Cohort 1" in names for names in newest] == [False, False]
    assert ["Cohort 1" in found(client, f"{address}?page=2") for address in addresses] == [True, True]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "address",
    ["/search/?q={}", "/markets/?q={}", "/questions/?q={}", "/decisions/?q={}"]
    + [f"/api/v1/{name}/?search={{}}" for name in ("markets", "questions", "decisions", "forecasts", "families")],
)
def test_search_of_a_hundred_words_compares_eight(client: Client, address: str) -> None:
    """Nor does it join a table once per word, which took a minute for twenty."""
    comparisons = {}
    for words in (8, 100):
        with CaptureQueriesContext(connection) as queries:
            answer = client.get(address.format("+".join(["e"] * words)))
        assert answer.status_code == 200
        statements = [query["sql"] for query in queries]
        comparisons[words] = sum(statement.count(" LIKE ") for statement in statements)
        assert all(statement.count(" JOIN ") <= 3 for statement in statements)
    assert comparisons[8] == comparisons[100] > 0
    if "api" not in address:
        text = visible_text(get_page(client, address.format("+".join(["e"] * 9))))
        assert "A search uses its first eight words; the others were ignored." in text
