"""Boards, calibration and comparisons as pages: the API's numbers, links to every other board, and honest gaps."""

import html
import json
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
from markets.prompt_conditions import PRICED
from scoring.leaderboard_history import BoardKey
from scoring.models import Leaderboard
from scoring.services.boards import refresh_boards, store_leaderboard
from scoring.services.disagreements import store_forecast_disagreements
from scoring.services.scores import compute_scores
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
)  # fmt: skip

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
END = WEEK + 30 * DAY
GPT, GROK = "gpt-5.1", "grok-4"
BOTH = f"/compare/{GPT}/{GROK}/"
MADE: dict[int, list[Leaderboard]] = {}
"""The forecast boards of a season by its weeks: the same season has the same, and to fit them takes seconds."""
COMPRESSED = 60_000
"""Bytes that a page may have at most on its way."""


def page(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return answer.content.decode()


def text(markup: str) -> str:
    """What a reader sees: no scripts, no tags, single spaces."""
    bare = re.sub(r"<script.*?</script>|<[^>]+>", " ", markup, flags=re.S)
    return " ".join(html.unescape(bare).split())


def section(markup: str, name: str) -> str:
    """The section under the heading with this id."""
    found = re.search(rf'<section aria-labelledby="{name}"[^>]*>.*?</section>', markup, re.S)
    assert found
    return found.group()


def chart_data(markup: str, key: str) -> dict[str, Any]:
    """What a chart's script is given."""
    found = re.search(rf'<script id="{key}" type="application/json">(.*?)</script>', markup, re.S)
    assert found
    return json.loads(found[1])


def rows_of(client: Client, address: str) -> list[dict[str, Any]]:
    return client.get(address).json()["results"]


def agent_of(slug: str, cohort: Cohort) -> Agent:
    return AgentFactory(cohort=cohort, family=Family.objects.get(slug=slug))


def a_season(weeks: int = 2) -> None:
    """Cohorts in which GPT and Grok bet against each other in two categories, and stated odds on the same markets."""
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
    known = MADE.get(weeks) if not Leaderboard.objects.exists() else None
    compute_scores(at=END, forecast_boards=known is None)
    if known is None:
        MADE[weeks] = list(Leaderboard.objects.filter(protocol="forecast"))
    else:
        Leaderboard.objects.bulk_create(known)
        store_forecast_disagreements(PRICED)


# --- the front page -------------------------------------------------------------------------------------


def test_both_boards_stand_side_by_side_with_the_apis_numbers(client: Client) -> None:
    a_season()
    shown = page(client, "/")
    bets, words = text(section(shown, "trading")), text(section(shown, "forecasts"))
    for entry in rows_of(client, "/api/v1/leaderboard/"):
        assert text(arena.signed_percent(entry["return_percent"])) in bets
        assert arena.money(entry["total_value"]) in bets
        if entry["brier_ci"]:
            low, high = map(arena.score, entry["brier_ci"])
            assert f"{arena.score(entry['brier'])} {low}–{high}" in bets
    scored = [e for e in rows_of(client, "/api/v1/leaderboard/?protocol=forecast") if e["brier"] is not None]
    assert {entry["forecaster"] for entry in scored} >= {GPT, GROK, "market", "uniform"}
    for entry in scored:
        if not entry["forecaster"].startswith("ensemble_"):
            assert f"{entry['display_name']}" in words
            assert arena.score(entry["brier"]) in words


def test_the_top_says_who_leads_and_who_could_as_well(client: Client) -> None:
    a_season()
    verdicts = text(re.search(r'<div class="headlines">.*?</dl>', page(client, "/"), re.S)[0])
    (leader, *_) = rows_of(client, "/api/v1/leaderboard/")
    rivals = sum(entry["rank_low"] == 1 for entry in rows_of(client, "/api/v1/leaderboard/")[1:])
    assert f"{leader['display_name']} leads" in verdicts
    assert text(arena.signed_percent(leader["return_percent"])) in verdicts
    assert ("No other could be first" if not rivals else f"{rivals} other") in verdicts


def test_a_category_narrows_scores_and_a_past_day_shows_the_board_of_then(client: Client) -> None:
    a_season()
    for query in ("category=Politics", "as_of=2026-03-10", "category=Sports&as_of=2026-03-12", "methodology=v2"):
        bets = section(page(client, f"/?{query}"), "trading")
        for entry in rows_of(client, f"/api/v1/leaderboard/?{query}"):
            row = next(text(part) for part in re.findall(r"<tr>.*?</tr>", bets, re.S) if entry["display_name"] in part)
            assert arena.money(entry["total_value"]) in row
            assert f" {arena.score(entry['brier'])} " in row
    assert "4 bets" in text(section(page(client, "/"), "trading"))
    for narrowed in ("category=Politics", "category=Politics&as_of=2026-03-12"):
        assert "4 bets" not in text(section(page(client, f"/?{narrowed}"), "trading"))
    assert "4 bets" in text(section(page(client, "/?as_of=2026-03-12"), "trading"))
    assert "0 bets" in text(section(page(client, "/?as_of=2026-03-10"), "trading"))
    assert "The boards as they stood on 10 Mar 2026" in text(page(client, "/?as_of=2026-03-10"))


def test_every_link_to_another_board_or_range_leads_to_one(client: Client) -> None:
    a_season()
    shown = page(client, "/")
    links = {html.unescape(link).split("#")[0] for link in re.findall(r'href="(\?[^"]*)"', shown)}
    assert {"?category=Politics", "?range=1W", "?as_of=2026-03-15"} <= links
    for link in links:
        page(client, f"/{link}")


@pytest.mark.parametrize(
    "query", ["category=Nonsense", "range=2D", "methodology=v9", "as_of=tomorrow", "as_of=2999-01-01"]
)
def test_a_board_that_there_is_not_is_a_404(client: Client, query: str) -> None:
    page(client, f"/?{query}", status=404)


@pytest.mark.parametrize("name", ["10M", "1W", "1M", "ALL"])
def test_the_chart_of_a_range_shows_the_very_values_of_the_api(client: Client, name: str) -> None:
    a_season()
    curves = chart_data(page(client, f"/?range={name}"), "equity")
    series = {row["family"]: row["points"] for row in client.get(f"/api/v1/performance/?range={name}").json()["series"]}
    names = dict(Family.objects.values_list("slug", "display_name"))
    drawn = {curve["name"]: [value for value in curve["values"] if value is not None] for curve in curves["curves"]}
    assert drawn == {names[slug]: [float(value) for _, value in points] for slug, points in series.items() if points}


def test_old_snapshots_are_called_stale_and_fresh_ones_are_not(client: Client) -> None:
    a_season()
    newest = WEEK + 16 * DAY
    with time_machine.travel(newest + timedelta(minutes=20), tick=False):
        assert "stale" not in text(page(client, "/"))
    with time_machine.travel(newest + timedelta(hours=3), tick=False):
        shown = text(page(client, "/"))
    assert "No snapshot for 3 hours: values and returns are as of 24 Mar 2026, 00:00 UTC" in shown


def test_the_heads_of_the_chains_are_shown(client: Client) -> None:
    a_season()
    proof = section(page(client, "/"), "chains")
    heads = [chain["head"] for chain in rows_of(client, "/api/v1/chain/") if chain["length"]]
    assert heads
    for head in heads:
        assert f"<code>{head}</code>" in proof


# --- pictures for pages elsewhere -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["leaderboard", "forecasts"])
@pytest.mark.parametrize("played", [True, False])
def test_a_board_has_a_picture_for_pages_elsewhere(client: Client, name: str, *, played: bool) -> None:
    if played:
        a_season()
        Family.objects.filter(slug=GPT).update(display_name="$\\frac{1}{$ <b>")
    answer = client.get(f"/og/{name}.png")
    assert answer["Content-Type"] == "image/png"
    assert struct.unpack(">II", answer.content[16:24]) == (1200, 630)
    assert client.get(f"/og/{name}.png", headers={"If-None-Match": answer["ETag"]}).status_code == 304


def test_a_new_board_is_drawn_anew(client: Client) -> None:
    a_season()
    before = client.get("/og/forecasts.png")
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    entries = [entry for entry in board.entries if entry["forecaster"] != GROK]
    store_leaderboard(BoardKey("forecast", arm="priced"), computed_at=END, entries=entries, report=board.report)
    after = client.get("/og/forecasts.png", headers={"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert after.content != before.content


def test_there_is_no_other_picture(client: Client) -> None:
    page(client, "/og/secrets.png", status=404)


# --- calibration ----------------------------------------------------------------------------------------


def cells(markup: str) -> list[list[str]]:
    """The text of each cell of each row, small print left out."""
    markup = re.sub(r"<small>.*?</small>", "", markup, flags=re.S)
    rows = re.findall(r"<tr[ >].*?</tr>", markup, re.S)
    return [[text(cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.S)] for row in rows]


@pytest.mark.parametrize("name", ["forecasts", "trades"])
def test_the_parts_of_a_score_add_up_on_the_page(client: Client, name: str) -> None:
    a_season()
    by_family = {row[0]: row for row in cells(section(page(client, "/calibration/"), name)) if len(row) == 9}
    for forecaster in ("GPT-5.2", "Grok 4.1"):
        _, _, _, brier, reliability, resolution, uncertainty, variance, covariance = by_family[forecaster]
        parts = float(reliability) - float(resolution) + float(uncertainty) + float(variance) - float(
            covariance.replace("−", "-")
        )  # fmt: skip
        assert abs(float(brier) - parts) < 0.001


def test_calibration_shows_counts_intervals_and_stakes_beside_words(client: Client) -> None:
    a_season()
    shown = page(client, "/calibration/")
    board = Leaderboard.objects.get(protocol="trading", methodology="")
    bets = board.report["calibration"]["families"][GPT]
    assert bets["n"] == board.report["calibration"]["bets"] / 2
    assert sum(bin["pairs"] for bin in bets["bins"]) == bets["n"]
    for bin in bets["bins"]:
        said = f"said {bin['forecast']:.2f}, happened {bin['outcome']:.2f}, {bin['pairs']} probabilities"
        assert said in section(shown, "trades")
        assert f"{arena.score(bin['low'])}–{arena.score(bin['high'])}" in section(shown, "trades")
    assert "GPT-5.2: 2 bets" in section(shown, "stakes")


def test_words_without_prices_have_diagrams_of_their_own(client: Client) -> None:
    a_season()
    assert "Grok 4.1" in text(section(page(client, "/calibration/"), "forecasts"))
    blind = text(section(page(client, "/calibration/?arm=blind"), "forecasts"))
    assert "GPT-5.2" in blind
    assert "Grok 4.1" not in blind
    page(client, "/calibration/?arm=deaf", status=404)


def test_the_calibration_of_bets_is_renewed_by_a_score_also_where_a_board_keeps_what_it_knows(client: Client) -> None:
    a_season()
    market = MarketFactory()
    bet(Agent.objects.earliest("pk"), market, "YES", "700.00")
    before = Leaderboard.objects.get(protocol="trading", methodology="").report
    resolve(market, "YES", at=END)
    compute_scores(at=END, forecast_boards=False)
    boards = Leaderboard.objects.filter(protocol="trading")
    boards.update(report=before)
    refresh_boards(at=END, afresh=False)
    assert boards.get(methodology="").report["calibration"]["bets"] == before["calibration"]["bets"] + 1


# --- two families ---------------------------------------------------------------------------------------


def test_two_families_are_compared_under_both_protocols_and_tested(client: Client) -> None:
    a_season()
    shown = page(client, BOTH)
    board = Leaderboard.objects.get(protocol="forecast", arm="priced", methodology="", category="")
    pair = next(p for p in board.report["pairs"] if {p["first"], p["second"]} == {GPT, GROK})
    verdicts = text(re.search(r'<div class="headlines">.*?</div>\s*</div>', shown, re.S)[0])
    assert f"Difference in Brier score: {arena.signed_score(pair['difference'])}" in verdicts
    assert f"{pair['n']} common forecasts" in verdicts
    assert "over 2 common cohorts" in verdicts
    by_number = {row["family"]: row for row in rows_of(client, "/api/v1/leaderboard/")}
    figures = {row[0]: row[1:] for row in cells(section(shown, "trading"))}
    assert figures["Mean return"] == [text(arena.signed_percent(by_number[s]["return_percent"])) for s in (GPT, GROK)]
    assert figures["Brier, bet-implied"] == [arena.score(by_number[slug]["brier"]) for slug in (GPT, GROK)]


def test_the_other_way_round_only_the_signs_change(client: Client) -> None:
    a_season()
    one, other = (cells(section(page(client, address), "cohorts")) for address in (BOTH, f"/compare/{GROK}/{GPT}/"))
    assert one[0] != other[0]
    for told in ("Difference in Brier score", r"\S+ [\d.]* ?less \S+ ?[\d.]*"):
        pages = [page(client, address) for address in (BOTH, f"/compare/{GROK}/{GPT}/")]
        said = [re.search(rf"{told}: <b>(.)(.*?)</b>", shown) for shown in pages]
        assert {found[1] for found in said} == {"+", "−"}
        assert said[0][2] == said[1][2]
    for mine, theirs in zip(one[1:], other[1:], strict=True):
        assert mine[2:4] == theirs[2:4][::-1]
        assert mine[4] == theirs[4].translate(str.maketrans("+−", "−+"))


def test_their_bets_against_each_other_and_biggest_disagreements_are_linked(client: Client) -> None:
    a_season()
    shown = page(client, BOTH)
    against = cells(section(shown, "position-disagreements"))[1:]
    assert [row[1:] for row in against] == [["YES", "NO", "YES"], ["YES", "NO", "NO"]]
    assert "$2,000.00" in section(shown, "position-disagreements")
    said = ["70.0 %", "40.0 %", "40.0 %"]
    assert [row[3:] for row in cells(section(shown, "disagreements"))[1:]] == [[*said, "no"], [*said, "yes"]]
    assert re.search(r'href="/questions/\d+/"', section(shown, "disagreements"))


def test_two_who_never_met_have_a_page_that_says_so(client: Client) -> None:
    shown = text(page(client, BOTH))
    assert "They have played no cohort together yet." in shown
    assert "They have not answered a common question yet." in shown
    assert "None" not in shown


@pytest.mark.parametrize("address", [f"/compare/{GPT}/{GPT}/", f"/compare/{GPT}/nobody/", f"/compare/nobody/{GPT}/"])
def test_nobody_is_compared_with_oneself_or_a_stranger(client: Client, address: str) -> None:
    page(client, address, status=404)


def test_every_pair_is_one_click_away(client: Client) -> None:
    linked = set(re.findall(r'href="(/compare/[^"]+/[^"]+/)"', page(client, "/compare/")))
    assert len(linked) == 7 * 6


# --- all of them ----------------------------------------------------------------------------------------

ADDRESSES = ("/", "/forecasts/", "/calibration/", "/compare/", BOTH)


@pytest.mark.parametrize("played", [True, False])
def test_each_page_describes_itself_and_is_light(client: Client, *, played: bool) -> None:
    if played:
        a_season()
    titles = set()
    for address in ADDRESSES:
        answer = client.get(address, headers={"Accept-Encoding": "gzip"})
        assert answer["Content-Encoding"] == "gzip"
        assert len(answer.content) < COMPRESSED
        shown = page(client, address)
        titles.add(re.search(r"<title>(.+?)</title>", shown)[1])
        for name in ("og:title", "og:description", "og:image", "og:url"):
            assert re.search(rf'<meta property="{name}" content="[^"]+">', shown)
        assert f'<link rel="canonical" href="http://testserver{address}">' in shown
        assert re.search(r'<meta name="description" content="[^"]{40,}">', shown)
        assert '<link rel="alternate" type="application/json"' in shown
        assert len(re.findall("<h1", shown)) == 1
        assert "None" not in re.sub("None of these", "", text(shown))
    assert len(titles) == len(ADDRESSES)


def test_the_pictures_and_alternates_that_pages_name_exist(client: Client) -> None:
    a_season()
    for address in ADDRESSES:
        shown = page(client, address)
        named = re.findall(r'property="og:image" content="http://testserver([^"]+)"', shown)
        named += re.findall(r'rel="alternate" type="application/json"[^>]* href="([^"]+)"', shown)
        assert len(named) > 1
        for link in named:
            assert client.get(html.unescape(link)).status_code == 200


def test_more_cohorts_and_questions_cost_no_more_queries(client: Client) -> None:
    def queries() -> dict[str, int]:
        found = {}
        for address in ADDRESSES:
            page(client, address)
            with CaptureQueriesContext(connection) as captured:
                page(client, address)
            found[address] = len(captured)
        return found

    a_season()
    few = queries()
    a_season(weeks=1)
    assert queries() == few
    assert max(few.values()) <= 24, few


def test_only_pages_with_a_chart_load_its_script(client: Client) -> None:
    assert "d3" not in page(client, "/calibration/")
    assert "d3.v5.min.js" not in page(client, "/")  # nothing is drawn yet
    a_season()
    assert page(client, "/").count("d3.v5.min.js") == 1
