"""Pages of leaderboards, calibration and comparisons: the API's numbers, their links and their missing data."""

import re
import struct
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family
from arena_site.pages import filters as arena
from cohorts.models import Cohort
from scoring.leaderboard_history import LeaderboardKey
from scoring.models import Leaderboard
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import refresh_trading_leaderboards, store_leaderboard
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    MarketFactory,
    QuestionFactory,
    SnapshotFactory,
    asked,
    bet,
    chained,
    ended,
    resolve,
)
from tests.markup import chart_data, element, elements, get_page, links, section, table_row, table_rows, visible_text

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
END = WEEK + 30 * DAY
GPT, GROK = "gpt-5.1", "grok-4"
BOTH = f"/compare/{GPT}/{GROK}/"
FITTED: dict[int, list[Leaderboard]] = {}
"""The forecast boards of a season by its weeks: the same season has the same, and to fit them takes seconds."""
MAX_COMPRESSED_BYTES = 60_000


def api_rows(client: Client, address: str) -> list[dict[str, Any]]:
    return client.get(address).json()["results"]


def spaced(formatted: str) -> str:
    """A formatted number with its thin spaces as spaces, which is how `visible_text` gives them."""
    return " ".join(formatted.split())


def agent_of(slug: str, cohort: Cohort) -> Agent:
    return AgentFactory(cohort=cohort, family=Family.objects.get(slug=slug))


def create_season(weeks: int = 2) -> None:
    """Cohorts in which GPT and Grok bet against each other in two categories, and forecast the same markets."""
    markets = [MarketFactory(question=f"Will it rain in town {n}?", category=("Politics", "Sports")[n]) for n in (0, 1)]
    questions = [QuestionFactory(markets=[market]) for market in markets]
    for cohort in CohortFactory.create_batch(weeks):
        for slug, side in ((GPT, "YES"), (GROK, "NO")):
            agent = agent_of(slug, cohort)
            for market, amount in zip(markets, ("1000.00", "400.00"), strict=True):
                bet(agent, market, side, amount)
            for days in (0, 1, 9):
                worth = Decimal(10000 + (250 if slug == GPT else -125) * days)
                SnapshotFactory(agent=agent, taken_at=cohort.week_start + days * DAY, cash=worth)
    for question in questions:
        asked(question, {GPT: [0.7, 0.3], GROK: [0.4, 0.6]})
        asked(question, {GPT: [0.55, 0.45]}, arm="blind")
    for question, side in zip(questions, ("YES", "NO"), strict=True):
        ended(question, side, at=WEEK + 3 * DAY)
    chained()
    boards = FITTED.get(weeks) if not Leaderboard.objects.exists() else None
    compute_scores(at=END, forecast_leaderboards=boards is None)
    if boards is None:
        FITTED[weeks] = list(Leaderboard.objects.filter(protocol="forecast"))
    else:
        Leaderboard.objects.bulk_create(boards)


# --- the front page -------------------------------------------------------------------------------------


def test_both_boards_stand_side_by_side_with_the_apis_numbers(client: Client) -> None:
    create_season()
    page = get_page(client, "/")
    trading, forecasts = visible_text(section(page, "trading")), visible_text(section(page, "forecasts"))
    for entry in api_rows(client, "/api/v1/leaderboard/"):
        assert spaced(arena.signed_percent(entry["return_percent"])) in trading
        assert arena.money(entry["total_value"]) in trading
        if entry["brier_ci"]:
            low, high = map(arena.score, entry["brier_ci"])
            assert f"{arena.score(entry['brier'])} {low}–{high}" in trading
    scored = [e for e in api_rows(client, "/api/v1/leaderboard/?protocol=forecast") if e["brier"] is not None]
    assert {entry["forecaster"] for entry in scored} >= {GPT, GROK, "market", "uniform"}
    for entry in scored:
        if not entry["forecaster"].startswith("ensemble_"):
            assert entry["display_name"] in forecasts
            assert arena.score(entry["brier"]) in forecasts


def test_headline_names_the_leader_and_the_number_of_rivals(client: Client) -> None:
    create_season()
    headlines = visible_text(get_page(client, "/"), ".headlines")
    leader, *others = api_rows(client, "/api/v1/leaderboard/")
    rivals = sum(entry["rank_low"] == 1 for entry in others)
    assert f"{leader['display_name']} leads" in headlines
    assert spaced(arena.signed_percent(leader["return_percent"])) in headlines
    assert ("No other could be first" if not rivals else f"{rivals} other") in headlines


def test_category_narrows_scores_and_a_past_day_shows_that_days_board(client: Client) -> None:
    create_season()

    def trading(query: str) -> Any:
        return section(get_page(client, f"/?{query}"), "trading")

    for query in ("category=Politics", "as_of=2026-03-10", "category=Sports&as_of=2026-03-12", "methodology=v2"):
        for entry in api_rows(client, f"/api/v1/leaderboard/?{query}"):
            row = table_row(trading(query), entry["display_name"])
            assert arena.money(entry["total_value"]) in row
            assert f" {arena.score(entry['brier'])} " in row
    for query in ("", "as_of=2026-03-12"):
        assert "4 bets" in visible_text(trading(query))
        assert "4 bets" not in visible_text(trading(f"category=Politics&{query}"))
    assert "0 bets" in visible_text(trading("as_of=2026-03-10"))
    assert "The boards as they stood on 10 Mar 2026" in visible_text(get_page(client, "/?as_of=2026-03-10"))


def test_every_link_to_another_board_or_range_leads_to_one(client: Client) -> None:
    create_season()
    queries = {link.split("#")[0] for link in links(get_page(client, "/"), 'a[href^="?"]')}
    assert {"?category=Politics", "?range=1W", "?as_of=2026-03-15"} <= queries
    for query in queries:
        get_page(client, f"/{query}")


@pytest.mark.parametrize("name", ["10M", "1W", "1M", "ALL"])
def test_the_chart_of_a_range_shows_the_very_values_of_the_api(client: Client, name: str) -> None:
    create_season()
    curves = chart_data(get_page(client, f"/?range={name}"), "equity")
    series = {row["family"]: row["points"] for row in client.get(f"/api/v1/performance/?range={name}").json()["series"]}
    names = dict(Family.objects.values_list("slug", "display_name"))
    drawn = {curve["name"]: [value for value in curve["values"] if value is not None] for curve in curves["curves"]}
    assert drawn == {names[slug]: [float(value) for _, value in points] for slug, points in series.items() if points}


def test_old_snapshots_are_called_stale_and_fresh_ones_are_not(client: Client) -> None:
    create_season()
    newest = WEEK + 16 * DAY
    with time_machine.travel(newest + timedelta(minutes=20), tick=False):
        assert "stale" not in visible_text(get_page(client, "/"))
    with time_machine.travel(newest + timedelta(hours=3), tick=False):
        text = visible_text(get_page(client, "/"))
    assert "No snapshot for 3 hours: values and returns are as of 24 Mar 2026, 00:00 UTC" in text


def test_the_heads_of_the_chains_are_shown(client: Client) -> None:
    create_season()
    heads = [chain["head"] for chain in api_rows(client, "/api/v1/chain/") if chain["length"]]
    assert heads
    assert set(heads) <= set(map(visible_text, elements(section(get_page(client, "/"), "chains"), "code")))


@pytest.mark.parametrize(
    "address",
    [
        *(f"/?{query}" for query in ("category=X", "range=2D", "methodology=v9", "as_of=tomorrow", "as_of=2999-01-01")),
        "/og/secrets.png",
        "/calibration/?arm=deaf",
        *(f"/compare/{pair}/" for pair in (f"{GPT}/{GPT}", f"{GPT}/nobody", f"nobody/{GPT}")),
    ],
)
def test_unknown_board_image_arm_or_pair_is_a_404(client: Client, address: str) -> None:
    get_page(client, address, status=404)


# --- share images ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leaderboard", "forecasts"])
@pytest.mark.parametrize("has_data", [True, False])
def test_board_has_a_share_image(client: Client, name: str, *, has_data: bool) -> None:
    if has_data:
        create_season()
        Family.objects.filter(slug=GPT).update(display_name="$\\frac{1}{$ <b>")
    response = client.get(f"/og/{name}.png")
    assert response["Content-Type"] == "image/png"
    assert struct.unpack(">II", response.content[16:24]) == (1200, 630)
    assert client.get(f"/og/{name}.png", headers={"If-None-Match": response["ETag"]}).status_code == 304


def test_new_board_gets_a_new_share_image(client: Client) -> None:
    create_season()
    before = client.get("/og/forecasts.png")
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    entries = [entry for entry in board.entries if entry["forecaster"] != GROK]
    store_leaderboard(LeaderboardKey("forecast", arm="priced"), computed_at=END, entries=entries, report=board.report)
    after = client.get("/og/forecasts.png", headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert after.content != before.content


# --- calibration ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["forecasts", "trades"])
def test_the_parts_of_a_score_add_up_on_the_page(client: Client, name: str) -> None:
    create_season()
    rows = table_rows(section(get_page(client, "/calibration/"), name), small_print=False)
    by_family = {row[0]: row for row in rows if len(row) == 9}
    for forecaster in ("GPT-5.2", "Grok 4.1"):
        figures = [float(figure.replace("−", "-")) for figure in by_family[forecaster][3:]]
        brier, reliability, resolution, uncertainty, variance, covariance = figures
        assert abs(brier - (reliability - resolution + uncertainty + variance - covariance)) < 0.001


def test_calibration_shows_counts_intervals_and_stakes(client: Client) -> None:
    create_season()
    page = get_page(client, "/calibration/")
    trades = section(page, "trades").html
    report = Leaderboard.objects.get(protocol="trading", methodology="").report["calibration"]
    family = report["families"][GPT]
    assert family["n"] == report["bets"] / 2
    assert sum(bin["pairs"] for bin in family["bins"]) == family["n"]
    for bin in family["bins"]:
        assert f"said {bin['forecast']:.2f}, happened {bin['outcome']:.2f}, {bin['pairs']} probabilities" in trades
        assert f"{arena.score(bin['low'])}–{arena.score(bin['high'])}" in trades
    assert "GPT-5.2: 2 bets" in section(page, "stakes").html


def test_forecasts_without_prices_have_diagrams_of_their_own(client: Client) -> None:
    create_season()
    assert "Grok 4.1" in visible_text(section(get_page(client, "/calibration/"), "forecasts"))
    blind = visible_text(section(get_page(client, "/calibration/?arm=blind"), "forecasts"))
    assert "GPT-5.2" in blind
    assert "Grok 4.1" not in blind


def test_new_score_renews_the_calibration_of_bets_on_an_unchanged_board(client: Client) -> None:
    create_season()
    market = MarketFactory()
    bet(Agent.objects.earliest("pk"), market, "YES", "700.00")
    before = Leaderboard.objects.get(protocol="trading", methodology="").report
    resolve(market, "YES", at=END)
    compute_scores(at=END, forecast_leaderboards=False)
    boards = Leaderboard.objects.filter(protocol="trading")
    boards.update(report=before)
    refresh_trading_leaderboards(at=END, reuse_scores=True)
    assert boards.get(methodology="").report["calibration"]["bets"] == before["calibration"]["bets"] + 1


# --- two families ---------------------------------------------------------------------------------------


def test_two_families_are_compared_under_both_protocols_and_tested(client: Client) -> None:
    create_season()
    page = get_page(client, BOTH)
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    pair = next(p for p in board.report["pairs"] if {p["first"], p["second"]} == {GPT, GROK})
    headlines = visible_text(page, ".headlines")
    assert f"Difference in Brier score: {arena.signed_score(pair['difference'])}" in headlines
    assert f"{pair['n']} common forecasts" in headlines
    assert "over 2 common cohorts" in headlines
    entries = {entry["family"]: entry for entry in api_rows(client, "/api/v1/leaderboard/")}
    returns = [spaced(arena.signed_percent(entries[slug]["return_percent"])) for slug in (GPT, GROK)]
    figures = {row[0]: row[1:] for row in table_rows(section(page, "trading"), small_print=False)}
    assert figures["Mean return"] == returns
    assert figures["Brier, bet-implied"] == [arena.score(entries[slug]["brier"]) for slug in (GPT, GROK)]


def test_the_other_way_round_only_the_signs_change(client: Client) -> None:
    create_season()
    pages = [get_page(client, address) for address in (BOTH, f"/compare/{GROK}/{GPT}/")]
    one, other = (table_rows(section(page, "cohorts"), small_print=False) for page in pages)
    assert one[0] != other[0]
    for label in ("Difference in Brier score", r"\S+ [\d.]* ?less \S+ ?[\d.]*"):
        figures = [re.search(rf"{label}: ([+−])([\d.]+)", visible_text(page)) for page in pages]
        assert {figure[1] for figure in figures} == {"+", "−"}
        assert figures[0][2] == figures[1][2]
    for mine, theirs in zip(one[1:], other[1:], strict=True):
        assert mine[2:4] == theirs[2:4][::-1]
        assert mine[4] == theirs[4].translate(str.maketrans("+−", "−+"))


def test_opposite_bets_and_biggest_disagreements_are_linked(client: Client) -> None:
    create_season()
    page = get_page(client, BOTH)
    positions = table_rows(section(page, "position-disagreements"), small_print=False)[1:]
    assert [row[1:] for row in positions] == [["YES", "NO", "YES"], ["YES", "NO", "NO"]]
    assert "$2,000.00" in visible_text(section(page, "position-disagreements"))
    disagreements = section(page, "disagreements")
    stated = ["70.0 %", "40.0 %", "40.0 %"]
    assert [row[3:] for row in table_rows(disagreements)[1:]] == [[*stated, "no"], [*stated, "yes"]]
    assert links(disagreements, 'a[href^="/questions/"]')


def test_families_without_a_common_cohort_have_a_page_that_says_so(client: Client) -> None:
    text = visible_text(get_page(client, BOTH))
    assert "They have played no cohort together yet." in text
    assert "They have not answered a common question yet." in text
    assert "None" not in text


def test_every_pair_is_one_click_away(client: Client) -> None:
    assert len(set(links(get_page(client, "/compare/"), 'main a[href^="/compare/"]'))) == 7 * 6


# --- all of them ----------------------------------------------------------------------------------------

ADDRESSES = ("/", "/forecasts/", "/calibration/", "/compare/", BOTH)


@pytest.mark.parametrize("has_data", [True, False])
def test_each_page_describes_itself_and_is_light(client: Client, *, has_data: bool) -> None:
    if has_data:
        create_season()
    titles = set()
    for address in ADDRESSES:
        response = client.get(address, headers={"Accept-Encoding": "gzip"})
        assert response["Content-Encoding"] == "gzip"
        assert len(response.content) < MAX_COMPRESSED_BYTES
        page = get_page(client, address)
        titles.add(visible_text(element(page, "title")))
        for name in ("title", "description", "image", "url"):
            assert element(page, f'meta[property="og:{name}"]').attributes["content"]
        assert links(page, "link[rel=canonical]") == [f"http://testserver{address}"]
        assert len(element(page, "meta[name=description]").attributes["content"]) >= 40
        assert len(elements(page, "h1")) == 1
        assert "None" not in visible_text(page).replace("None of these", "")
        named = [element(page, 'meta[property="og:image"]').attributes["content"].removeprefix("http://testserver")]
        named += links(page, 'link[rel=alternate][type="application/json"]')
        assert len(named) > 1
        for link in named:
            assert client.get(link).status_code == 200
    assert len(titles) == len(ADDRESSES)


def test_more_cohorts_and_questions_cost_no_more_queries(client: Client) -> None:
    def count_queries(address: str) -> int:
        get_page(client, address)
        with CaptureQueriesContext(connection) as captured:
            get_page(client, address)
        return len(captured)

    create_season()
    few = {address: count_queries(address) for address in ADDRESSES}
    create_season(weeks=1)
    assert {address: count_queries(address) for address in ADDRESSES} == few
    assert max(few.values()) <= 24, few


def test_only_pages_with_a_chart_load_its_script(client: Client) -> None:
    scripts = 'script[src*="d3"]'
    assert not elements(get_page(client, "/calibration/"), scripts)
    assert not elements(get_page(client, "/"), scripts)  # nothing is drawn yet
    create_season()
    assert len(elements(get_page(client, "/"), scripts)) == 1
