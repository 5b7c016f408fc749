"""Pages of leaderboards, calibration and comparisons: the API's numbers, their links and their missing data."""

import re
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
import time_machine
from django.test import Client
from django.utils import timezone

from agents.models import Agent, Family
from arena_site.pages import filters as arena
from arena_site.pages.filters import exact_iso
from cohorts.models import Cohort
from foundation.models import Run
from scoring.leaderboard_keys import LeaderboardKey
from scoring.models import Leaderboard
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import LeaderboardContents, refresh_trading_leaderboards, store_leaderboards
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    MarketFactory,
    QuestionFactory,
    SnapshotFactory,
    ask,
    bet,
    chain_all,
    end_question,
    resolve,
)
from tests.markup import (
    chart_data,
    element,
    elements,
    get_page,
    links,
    section,
    table_row,
    table_rows,
    visible_text,
)  # fmt: skip
from tests.selection import chosen
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
DAY = timedelta(days=1)
END = WEEK + 30 * DAY
GPT, GROK = "gpt-5.1", "grok-4"
BOTH = f"/compare/{GPT}/{GROK}/"
CHART_SCRIPTS = 'script[src*="charts.js"]'


def api_rows(client: Client, address: str) -> list[dict[str, Any]]:
    return client.get(address).json()["results"]


def spaced(formatted: str) -> str:
    """A formatted number with its thin spaces as spaces, which is how `visible_text` gives them."""
    return " ".join(formatted.split())


def create_season(weeks: int = 2) -> None:
    """Cohorts in which GPT and Grok bet against each other in two categories, and forecast the same markets."""
    markets = [MarketFactory(question=f"Will it rain in town {n}?", category=("Politics", "Sports")[n]) for n in (0, 1)]
    questions = [QuestionFactory(markets=[market]) for market in markets]
    for cohort in CohortFactory.create_batch(weeks):
        for slug, side in ((GPT, "YES"), (GROK, "NO")):
            agent = AgentFactory(slug=slug, cohort=cohort)
            for market, amount in zip(markets, ("1000.00", "400.00"), strict=True):
                bet(agent, market, side, amount)
            for days in (0, 1, 9):
                worth = Decimal(10000 + (250 if slug == GPT else -125) * days)
                SnapshotFactory(agent=agent, taken_at=cohort.week_start + days * DAY, cash=worth)
    for question in questions:
        ask(question, {GPT: [0.7, 0.3], GROK: [0.4, 0.6]})
        ask(question, {GPT: [0.55, 0.45]}, arm="blind")
    for question, side in zip(questions, ("YES", "NO"), strict=True):
        end_question(question, side, at=WEEK + 3 * DAY)
    chain_all()
    compute_scores(at=END)


season = shared_rows(create_season)


# --- the front page -------------------------------------------------------------------------------------


def test_below_four_resolved_events_no_leader_is_named(client: Client, season: None) -> None:
    answer = visible_text(get_page(client, "/"), ".answer")
    assert answer == "No leader yet: 2 events resolved so far; a leader is named from 4 on."


def test_category_narrows_scores(client: Client, season: None) -> None:
    def trading(query: str) -> Any:
        return section(get_page(client, f"/trading/?{query}"), "trading")

    for query in ("category=Politics", "category=Sports", "methodology=v2"):
        for entry in api_rows(client, f"/api/v1/leaderboard/?{query}"):
            row = table_row(trading(query), entry["display_name"])
            assert arena.signed_percent(entry["return_percent"]).replace("\u202f", " ") in row
            assert f" {arena.score(entry['brier'])} " in row
    assert "4 bets" in visible_text(trading(""))
    assert "4 bets" not in visible_text(trading("category=Politics"))


def shown_board(client: Client, address: str) -> tuple[list[list[str]], str]:
    """The ranks and names of a page's first leaderboard, and its answer."""
    page = get_page(client, address)
    return [row[:2] for row in table_rows(element(page, "table.board"))], visible_text(page, ".answer, h1")


CITED = [
    ("/", "forecast leaderboard"),
    ("/forecasts/", "forecast leaderboard"),
    ("/forecasts/?arm=blind", "forecast leaderboard, without prices"),
    ("/forecasts/?category=Sports", "forecast leaderboard (Sports)"),
    ("/trading/", "trading leaderboard"),
    ("/trading/?category=Politics", "trading leaderboard (Politics)"),
]


def test_cited_address_shows_the_same_ranks_for_ever(client: Client, season: None) -> None:
    before = {address: shown_board(client, address) for address, _ in CITED}
    cited = {}
    for address, title in CITED:
        cite = visible_text(get_page(client, address), ".cite")
        cited[address] = re.findall(r"url = {http://testserver(/[^}]*as_of=2026-[^}]*)}", cite)
        assert f"title = {{Forecaster Arena: {title}}}" in cite
        assert f"Forecaster Arena: {title}, " in cite

    for category in ("Politics", "Sports"):
        question = QuestionFactory(markets=[MarketFactory(category=category)], category=category)
        ask(question, {GPT: [0.01, 0.99], GROK: [0.9, 0.1]}, day=WEEK + DAY)
        ask(question, {GPT: [0.01, 0.99], GROK: [0.9, 0.1]}, day=WEEK + DAY, arm="blind")
        end_question(question, "YES", at=END + DAY)
    compute_scores(at=END + DAY)

    for address, shown in before.items():
        assert (shown_board(client, address) == shown) == ("trading" in address), address
        assert [shown_board(client, dated) for dated in cited[address]] == [shown], address


def test_return_without_the_largest_bet_stands_on_board_and_agent_page(client: Client) -> None:
    agent = AgentFactory(slug=GPT)
    won, lost_market, held_market = (MarketFactory(prices={"YES": "0.40", "NO": "0.60"}) for _ in range(3))
    for market, amount in ((won, "1000.00"), (lost_market, "400.00"), (held_market, "200.00")):
        bet(agent, market, "YES", amount)
    resolve(won, "YES", at=WEEK + DAY)  # +1,500
    resolve(lost_market, "NO", at=WEEK + DAY)  # −400
    compute_scores(at=WEEK + 2 * DAY, forecast_leaderboards=False)
    row = table_row(section(get_page(client, "/trading/"), "trading"), "GPT-5.2")
    assert " +11.00 % – 3 without a book −4.00 % " in row
    assert "Without it the return would be −4.00 %." in visible_text(get_page(client, f"/cohorts/1/{GPT}/"))


def test_chart_of_returns_says_that_it_ends_elsewhere_than_the_table(client: Client, season: None) -> None:
    figure = visible_text(element(get_page(client, "/trading/"), "#returns"))
    assert "Average change of each model by cohort age." in figure
    assert "Later weeks rest on fewer cohorts (week 3: one), so a line does not end at the mean return." in figure
    assert "Lines are faded where fewer than three cohorts have reached the age." in figure


def test_every_link_to_another_board_or_range_leads_to_one(client: Client, season: None) -> None:
    queries = {link.split("#")[0] for link in links(get_page(client, "/trading/"), 'a[href^="?"]')}
    assert "?category=Politics" in queries
    for query in queries:
        assert client.get(f"/trading/{query}", follow=True).status_code == 200, query
    ranges = {
        visible_text(link): link.attributes["href"] for link in elements(get_page(client, "/cohorts/1/"), ".tabs a")
    }
    assert [*ranges] == ["10 min", "1 hour", "1 day", "1 week", "1 month", "3 months", "All"]
    assert ranges["1 week"] == "?range=1W#over-time"


def test_the_chart_of_a_range_shows_the_very_values_of_the_api(client: Client, season: None) -> None:
    page = get_page(client, "/cohorts/1/?range=1W")
    curves = chart_data(page, "values")
    address = links(page, 'link[rel=alternate][href*="/performance/"]')[0]
    assert address == "/api/v1/performance/?cohort=1&range=1W"
    answer = client.get(address).json()
    series = {row["family"]: row["points"] for row in answer["series"]}
    names = dict(Family.objects.values_list("slug", "display_name"))
    drawn = {curve["name"]: [value for value in curve["values"] if value is not None] for curve in curves["curves"]}
    assert drawn == {names[slug]: [float(value) for _, value in points] for slug, points in series.items() if points}


@pytest.mark.parametrize("address", ["/", "/trading/"])
def test_missing_snapshots_and_missed_decision_runs_are_told(client: Client, season: None, address: str) -> None:
    newest = WEEK + 16 * DAY
    Run.objects.create(kind="run_decisions", at=WEEK + 14 * DAY)

    def text(at: datetime) -> str:
        with time_machine.travel(at, tick=False):
            return visible_text(get_page(client, address))

    assert "paused" not in text(newest + timedelta(minutes=20))
    assert "Last updated 24 Mar 2026, 00:00 UTC , paused since 24 Mar 2026, 00:10 UTC" in text(
        newest + timedelta(hours=3)
    )
    # Snapshots go on, but nobody ran the decisions of Sunday.
    SnapshotFactory(agent=Agent.objects.first(), taken_at=WEEK + 21 * DAY + timedelta(minutes=40))
    sunday = WEEK + 21 * DAY + timedelta(minutes=41)
    assert "Last updated 29 Mar 2026, 00:40 UTC , paused since 29 Mar 2026, 00:05 UTC" in text(sunday)
    Run.objects.create(kind="run_decisions", at=WEEK + 21 * DAY)
    assert "paused" not in text(sunday)


# --- share images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", chosen(["trading"], ["trading", "forecasts"]))
def test_board_has_a_share_image(client: Client, name: str, season: None) -> None:
    Family.objects.filter(slug=GPT).update(display_name="$\\frac{1}{$ <b>")
    check_share_image(client, name)


def test_empty_board_has_a_share_image_and_no_script(client: Client) -> None:
    check_share_image(client, "trading")
    for address in ("/calibration/", "/trading/"):
        assert not elements(get_page(client, address), CHART_SCRIPTS), "nothing is drawn yet"


def check_share_image(client: Client, name: str) -> None:
    response = client.get(f"/og/{name}.png")
    assert response["Content-Type"] == "image/png"
    assert struct.unpack(">II", response.content[16:24]) == (1200, 630)
    assert client.get(f"/og/{name}.png", headers={"If-None-Match": response["ETag"]}).status_code == 304
    drawing = client.get(f"/og/{name}.svg")
    assert drawing["Content-Type"] == "image/svg+xml"
    assert ElementTree.fromstring(drawing.content).tag.endswith("svg")


def test_new_board_gets_a_new_share_image(client: Client, season: None) -> None:
    before = client.get("/og/forecasts.png")
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    entries = [entry for entry in board.entries if entry["forecaster"] != GROK]
    store_leaderboards({LeaderboardKey("forecast", arm="priced"): LeaderboardContents(entries, board.report)}, at=END)
    after = client.get("/og/forecasts.png", headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert after.content != before.content


# --- calibration ----------------------------------------------------------------------------------------


def test_new_score_renews_the_calibration_of_bets_on_an_unchanged_board(client: Client, season: None) -> None:
    market = MarketFactory()
    bet(Agent.objects.earliest("pk"), market, "YES", "700.00")
    before = Leaderboard.objects.get(protocol="trading", methodology="").report
    resolve(market, "YES", at=END)
    compute_scores(at=END, forecast_leaderboards=False)
    boards = Leaderboard.objects.filter(protocol="trading")
    boards.update(report=before)
    refresh_trading_leaderboards(at=END)
    assert boards.get(methodology="").report["calibration"]["bets"] == before["calibration"]["bets"] + 1


def test_words_for_scores_are_anchored_to_market_and_uniform(client: Client, season: None) -> None:
    scores = {
        entry["forecaster"]: entry["brier"] for entry in api_rows(client, "/api/v1/leaderboard/?protocol=forecast")
    }
    rows = table_rows(element(get_page(client, "/methodology/"), ".anchors"))
    assert rows[1:] == [
        [f"below the market’s ({scores['market']:.3f})", "better than the market"],
        ["between the market’s and uniform", "knows something, less than the market"],
        [f"uniform ({scores['uniform']:.3f}) and above", "no better than equal probabilities"],
    ]


# --- two families ---------------------------------------------------------------------------------------


def test_the_better_figure_of_two_families_is_marked(client: Client, season: None) -> None:
    rows = elements(section(get_page(client, BOTH), "forecast-priced"), "tbody tr")
    marked = {visible_text(row, "th"): [cell.attributes["class"] for cell in elements(row, "td")] for row in rows}
    assert marked["Brier"] == marked["Log score"] == ["number", "number better"]  # 0.290 and 0.260; -0.780 and -0.714
    assert marked["Questions"] == ["number", "number"]


def test_opposite_bets_and_biggest_disagreements_are_linked(client: Client, season: None) -> None:
    page = get_page(client, BOTH)
    positions = table_rows(section(page, "position-disagreements"), small_print=False)[1:]
    assert [row[1:] for row in positions] == [["YES", "NO", "YES"], ["YES", "NO", "NO"]]
    assert "$2,000.00" in visible_text(section(page, "position-disagreements"))
    disagreements = section(page, "disagreements")
    expected_shares = ["70.0 %", "40.0 %", "40.0 %"]
    assert [row[3:] for row in table_rows(disagreements)[1:]] == [[*expected_shares, "no"], [*expected_shares, "yes"]]
    assert links(disagreements, 'a[href^="/questions/"]')


def test_comparison_of_returns_names_the_age_of_its_cohorts(client: Client, season: None) -> None:
    newest = Cohort.objects.latest("week_start")
    age = (timezone.now() - newest.week_start) // timedelta(weeks=1)
    trading = visible_text(element(get_page(client, BOTH), ".headlines > div"))
    assert f"Of their cohorts 2 unfinished, {age} to {age + 1} weeks old." in trading


@pytest.mark.parametrize(("arm", "label"), [("priced", "with the market’s prices"), ("blind", "without prices")])
def test_comparison_names_the_condition_of_its_forecasts(
    client: Client, monkeypatch: pytest.MonkeyPatch, season: None, arm: str, label: str
) -> None:
    """Whichever is that of the boards."""
    monkeypatch.setattr("cohorts.conditions.Conditions.board", lambda *_, **__: arm)
    ask(QuestionFactory(), {GPT: [0.7, 0.3], GROK: [0.4, 0.6]}, arm=arm)
    pair = {"first": GPT, "second": GROK, "difference": -0.03, "margin": 0.01, "p_holm": 0.01, "n": 40, "events": 12}
    pair["freedom"] = 8.0
    contents = LeaderboardContents([], {"pairs": [pair]})
    store_leaderboards({LeaderboardKey("forecast", arm=arm): contents}, at=END)
    page = get_page(client, BOTH)
    assert visible_text(elements(page, ".headlines .headline")[-1]) == f"GPT-5.2 is ahead {label}"
    assert f"Forecasts {label}, in the latest" in visible_text(section(page, "disagreements"))


def test_families_without_a_common_cohort_have_a_page_that_says_so(client: Client) -> None:
    text = visible_text(get_page(client, BOTH))
    assert "They have no common cohort yet." in text
    assert "They have no common question yet." in text
    assert "None" not in text


def test_every_pair_is_one_click_away(client: Client) -> None:
    page = get_page(client, "/compare/")
    assert len(set(links(page, 'main a[href^="/compare/"]'))) == 7 * 6
    assert "on common questions when shown the market’s prices, row minus column" in visible_text(page)


# --- all of them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["/calibration/", "/trading/"])
def test_page_with_a_chart_loads_its_script(client: Client, season: None, address: str) -> None:
    assert len(elements(get_page(client, address), CHART_SCRIPTS)) == 1


LAST = f"as_of={quote(exact_iso(END))}"
SHOWN_ADDRESSES = {
    "/?sort=alpha&utm_source=mail": "/",
    f"/?{LAST}&sort=name": f"/?{LAST}",
    "/forecasts/?arm=blind&category=Sports&sort=-questions&gamma=0": "/forecasts/?arm=blind&category=Sports",
    "/forecasts/?gamma=1": "/forecasts/?gamma=1",
    f"/trading/?x=1&category=Sports&{LAST}": f"/trading/?category=Sports&{LAST}",
    "/agents/?track=open&protocol=forecast": "/agents/?track=open",
    "/calibration/?arm=blind&x=1": "/calibration/?arm=blind",
    "/costs/?arm=blind&x=1": "/costs/?arm=blind",
    "/time/?arm=blind&x=1": "/time/?arm=blind",
    "/disagreements/?model=gpt-5.1&x=1": "/disagreements/?model=gpt-5.1",
    "/findings/?finding=profit&x=1": "/findings/?finding=profit",
    "/cohorts/1/?range=1W&x=1": "/cohorts/1/?range=1W",
    "/markets/?q=rain&status=resolved&sort=-closes&x=1": "/markets/?status=resolved&q=rain",
    "/about/?x=1": "/about/",
}
"""Addresses that are asked for, and what of each the page shows."""


@pytest.mark.parametrize("address", SHOWN_ADDRESSES)
def test_shared_address_keeps_what_the_page_shows_and_drops_the_rest(
    client: Client, season: None, address: str
) -> None:
    page = get_page(client, address)
    shown = f"http://testserver{SHOWN_ADDRESSES[address]}"
    assert links(page, "link[rel=canonical]") == [shown]
    assert element(page, 'meta[property="og:url"]').attributes["content"] == shown
    assert links(get_page(client, SHOWN_ADDRESSES[address]), "link[rel=canonical]") == [shown]
