"""The answer on the front page: the leader, its score, the market, who is statistically tied, and the bracket."""

import csv
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models import Family
from arena_site.pages.board_figures import leader_title
from arena_site.pages.headlines import (
    agents_headline,
    forecast_headline,
    largest_bet_sentence,
    leaders,
    trading_headline,
)
from arena_site.pages.metrics import METRICS
from cohorts.models import Cohort
from scoring.leaderboard_keys import LeaderboardKey
from scoring.models import AgentsBoard, Leaderboard
from scoring.selectors.competition import competition_index
from scoring.services.published_boards import publish_boards
from scoring.services.trading_leaderboards import LeaderboardContents, store_leaderboards
from tests.factories import AgentFactory, CohortFactory
from tests.markup import element, elements, get_page, visible_text

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 15, 12, tzinfo=UTC)
FEEDS = {"decisions": "decisions", "resolutions": "resolutions"}
NAMES = {"gpt-5.1": "GPT-5.2", "claude-opus-4.5": "Claude Opus 4.5", "grok-4": "Grok 4.1", "kimi-k2": "Kimi K2"}


METRICS_UNKNOWN = dict.fromkeys({key.partition(":")[0] for key in METRICS} - {"brier", "adjusted_brier", "alpha"})


def entry(slug: str, brier: float, rank: int, **changes: Any) -> dict[str, Any]:
    name = NAMES.get(slug, slug.capitalize())
    return {
        "forecaster": slug, "family": slug if slug in NAMES else None, "display_name": name, "reference": name not in
        NAMES.values(), "external": False, "rank": rank, "rank_low": rank, "rank_high": rank, "n": 40, "coverage": 1.0,
        "ranked_by": "brier", "adjusted_brier": brier, "adjusted_brier_ci": None,
        "brier": brier, "brier_ci": [brier - 0.01, brier + 0.01], "alpha": 0.2 - brier, "alpha_se": 0.005,
        "alpha_ci": [0.19 - brier, 0.21 - brier], "cost_usd": "0.1", "ece_noise_floor": None, **METRICS_UNKNOWN,
    } | changes  # fmt: skip


def store_forecasts(
    p_values: dict[str, float | None], *, events: int = 12, market: tuple[float, float] = (0.1, 0.001), **leader: Any
) -> None:
    """Four models and two baselines; the leader's paired tests have these corrected p values.

    `market` is its lead on the market's prices and the corrected p of that.
    """
    slugs = list(NAMES)
    entries = [entry(slug, 0.1 + 0.02 * index, index + 1) for index, slug in enumerate(slugs)]
    entries[0] |= leader
    entries += [entry("market", 0.2, 5, alpha_ci=None, alpha_se=None), entry("uniform", 0.25, 6)]
    test = {"n": 40, "events": 12, "freedom": 8.0, "difference": -0.02, "se": 0.01, "margin": 0.05, "questions_more": 9}
    pairs = [{**test, "first": slugs[0], "second": slug, "p_holm": p} for slug, p in p_values.items()]
    against_market = {
        slugs[0]: {"difference": market[0], "p_holm": market[1], "margin": 0.05, "events": events, "freedom": 8.0}
    }
    data = {"questions": 40, "events": events, "forecasts": 160}
    report = {"pairs": pairs, "data": data, "market": against_market}
    store_leaderboards({LeaderboardKey("forecast", arm="priced"): LeaderboardContents(entries, report)}, at=AT)
    publish_boards(at=AT)


def answer(client: Client) -> str:
    return visible_text(get_page(client, "/"), ".answer")


BASIS = "on 40 resolved questions"
VALUE = f"Brier score 0.100 (95 % interval 0.090–0.110) {BASIS}, 15 March 2026."
DATED = "after 40 resolved questions, 15 March 2026."
BEST = f"GPT-5.2 forecasts best when shown the market’s prices: {VALUE}"


@pytest.mark.parametrize(
    ("p_values", "names"),
    [
        ((0.001, 0.001, 0.001), ""),
        ((0.05, 0.049, 0.001), "GPT-5.2 and Claude Opus 4.5"),
        ((0.2, 0.001, None), "GPT-5.2, Claude Opus 4.5 and 1 other"),
    ],
)
def test_one_forecasts_best_only_where_no_other_is_tied(
    client: Client, p_values: tuple[float | None, ...], names: str
) -> None:
    store_forecasts(dict(zip(list(NAMES)[1:], p_values, strict=True)))
    tie = "lead when shown the market’s prices; no test tells them apart after 40 resolved questions, 15 March 2026."
    sentence = f"{names} {tie}" if names else BEST
    assert answer(client) == sentence
    description = element(get_page(client, "/"), 'meta[name="description"]').attributes["content"]
    assert description.startswith(sentence)


SHORT_NAMES = ("GPT-5.2", "Claude Opus 4.5", "Grok 4.1", "Kimi K2", "Qwen 3")
LONG_NAMES = tuple(f"{name} Preview Thinking High Effort 2507" for name in SHORT_NAMES)
WORDY_CONDITION = "when shown the market’s prices and evidence, with a search tool"


@pytest.mark.parametrize("condition", ["when shown the market’s prices", WORDY_CONDITION])
@pytest.mark.parametrize("names", [SHORT_NAMES, LONG_NAMES])
def test_sentence_has_at_most_thirty_words(names: tuple[str, ...], condition: str) -> None:
    for number, tied, ranked_by in itertools.product(range(1, 6), range(5), ("brier", "adjusted_brier")):
        ranked, pairs = [], []
        for rank, name in enumerate(names[:number], 1):
            is_tied = rank <= tied + 1
            changes = {"display_name": name, "reference": False, "ranked_by": ranked_by, "n": 1_234_567}
            ranked.append(entry(name, 0.1, rank, rank_low=1 if is_tied else rank, **changes))
            pairs.append({"first": names[0], "second": name, "p_holm": 0.2 if is_tied else 0.01})
        report = {"data": {"events": 12}, "pairs": pairs[1:]}
        headline = forecast_headline(ranked, report, at=AT, condition=condition)
        assert headline is not None
        assert len(headline.sentence.split()) <= 30, headline.sentence
        assert names[0] in headline.sentence
        assert condition in headline.sentence
        ties = min(tied, number - 1)
        assert ("tells them apart" in headline.sentence) == (0 < ties < number - 1)
        assert headline.sentence.startswith("No test tells the") == (0 < ties == number - 1)


def test_where_no_test_tells_any_two_apart_nobody_leads(client: Client) -> None:
    store_forecasts(dict.fromkeys(list(NAMES)[1:], 0.2))
    assert answer(client) == (
        "No test tells the 4 models apart when shown the market’s prices (GPT-5.2, Claude Opus 4.5 and 2 others)"
        f" {DATED}"
    )
    store_forecasts(dict.fromkeys(list(NAMES)[1:], 0.2), events=9)
    assert answer(client) == (
        "9 resolved events are too few to tell the 4 models apart when shown the market’s prices (GPT-5.2, Claude Opus"
        " 4.5 and 2 others), 15 March 2026."
    )


def test_leaders_are_those_of_whom_no_test_tells_any_two_apart() -> None:
    """Cy is tied with the first, but told from Bob, who is tied with it too."""
    ranked = [entry(name, 0.1, rank) for rank, name in enumerate(("ann", "bob", "cy"), 1)]
    tests = [
        {"first": one, "second": other, "p_holm": p}
        for one, other, p in (("ann", "bob", 0.5), ("ann", "cy", 0.06), ("bob", "cy", 0.01))
    ]
    assert leaders(ranked, ranked[1:], tests, key="forecaster") == ["Ann", "Bob"]


def test_ties_by_adjusted_scores_are_those_of_the_rank_ranges() -> None:
    ranked = [entry(name, 0.1, rank, ranked_by="adjusted_brier") for rank, name in enumerate(("ann", "bob", "cy"), 1)]
    for row in ranked:
        row["reference"] = False
    ranked[1]["rank_low"] = 1
    data = {"events": 12, "questions": 52}
    report = {"data": data, "pairs": [{"first": "ann", "second": "bob", "p_holm": 0.001}]}
    headline = forecast_headline(ranked, report, at=AT, condition="without the market’s prices")
    assert headline is not None
    assert headline.sentence == (
        "Ann and Bob lead without the market’s prices; no test tells them apart after 52 resolved questions,"
        " 15 March 2026."
    )


def test_no_leader_is_named_below_four_events(client: Client) -> None:
    store_forecasts({}, events=3)
    assert answer(client) == "No leader yet: 3 events resolved so far; a leader is named from 4 on."
    store_forecasts(dict.fromkeys(list(NAMES)[1:], 0.001), events=10)
    assert answer(client) == BEST


def test_nobody_forecasts_best_below_ten_events(client: Client) -> None:
    store_forecasts(dict.fromkeys(list(NAMES)[1:], 0.001), events=9)
    few = "9 resolved events are too few to call one the best, 15 March 2026."
    assert answer(client) == f"GPT-5.2 leads when shown the market’s prices: Brier score 0.100; {few}"
    against = visible_text(get_page(client, "/"), ".short-answer")
    assert "9 resolved events are too few to tell who beats the market’s prices when shown them" in against


def test_chart_names_the_condition_of_its_headline(client: Client) -> None:
    store_forecasts({"claude-opus-4.5": 0.3, "grok-4": 0.01, "kimi-k2": 0.01})
    title = visible_text(get_page(client, "/"), "figure h2")
    assert title == (
        "GPT-5.2 has the lowest Brier score when shown the market’s prices, statistically tied with 1 other."
    )


def test_chart_brackets_the_tied_and_draws_the_baselines_as_lines(client: Client) -> None:
    store_forecasts({"claude-opus-4.5": 0.01, "grok-4": 0.3, "kimi-k2": 0.01})
    rows = elements(get_page(client, "/"), ".intervals li")
    brackets = [row.css_first(".bracket").attributes["class"].split()[2:] for row in rows]
    assert brackets == [["first"], ["spanned"], ["last"], []]
    scale = 100 / (0.25 + 0.25 * 0.06)  # the uniform score is the largest value, with headroom
    assert [row.css_first("circle").attributes["cx"] for row in rows] == [
        f"{round(score * scale, 2)}%" for score in (0.1, 0.12, 0.14, 0.16)
    ]
    baselines = {line.attributes["x1"] for line in elements(get_page(client, "/"), ".intervals li .baseline")}
    assert baselines == {f"{round(score * scale, 2)}%" for score in (0.2, 0.25)}


def test_cite_block_has_a_permanent_dated_address(client: Client) -> None:
    store_forecasts(dict.fromkeys(list(NAMES)[1:], 0.001))
    cite = visible_text(get_page(client, "/"), ".cite")
    assert BEST in cite
    assert "url = {http://testserver/?as_of=2026-03-15T12%3A00%3A00Z}" in cite
    get_page(client, "/?as_of=2026-03-15T12%3A00%3A00Z")


def board_names(client: Client, address: str) -> list[str]:
    return [
        row.css_first("th > a").text() if row.css_first("th > a") else row.css_first("th").text().split("baseline")[0]
        for row in elements(get_page(client, address), ".board tbody tr")
    ]


def test_whatever_quotes_a_demo_says_so(client: Client, settings: Any) -> None:
    settings.ARENA_DEMO = True
    store_forecasts(dict.fromkeys(list(NAMES)[1:], 0.001))
    page = get_page(client, "/")
    for cite in elements(page, ".cite"):
        assert visible_text(cite).count("Forecaster Arena (demo with invented data): ") == 2
    description = element(page, 'meta[name="description"]').attributes["content"]
    assert description.startswith("Demo with invented data. GPT-5.2")
    for address in ("/trading/", "/models/gpt-5.2/", "/agents/", "/cohorts/"):
        for name in ('meta[name="description"]', 'meta[property="og:description"]'):
            shared = element(get_page(client, address), name).attributes["content"] or ""
            assert shared.startswith("Demo with invented data. ")
    for feed, topic in FEEDS.items():
        title = f"<title>Forecaster Arena (demo with invented data): {topic}<"
        assert title in client.get(f"/feeds/{feed}.atom").content.decode()
    for address in ("/leaderboard.csv", "/charts/scores.csv", "/api/v1/families/?format=csv"):
        response = client.get(address)
        assert address.startswith("/api/") or 'filename="demo-' in response["Content-Disposition"]
        rows = list(csv.DictReader(response.content.decode().splitlines()))
        assert {row["demo"] for row in rows} == {"invented data"}


def test_board_sorts_by_links_in_its_headings(client: Client) -> None:
    store_forecasts({}, coverage=0.5)
    page = get_page(client, "/?as_of=")
    links = {link.attributes["aria-label"]: link.attributes["href"] for link in elements(page, ".board th a.sort")}
    assert links["Sort by coverage"] == "?as_of=&sort=coverage"
    names = ("rank", "name", "brier", "skill", "alpha", "questions", "coverage")
    assert links.keys() == {f"Sort by {name}" for name in names}
    assert board_names(client, "/?sort=coverage")[0] == "GPT-5.2"
    assert board_names(client, "/?sort=-coverage")[-1] == "GPT-5.2"
    assert board_names(client, "/?sort=name")[:2] == ["Claude Opus 4.5", "GPT-5.2"]
    heading = element(get_page(client, "/?sort=name"), '.board th[aria-sort="ascending"]')
    assert element(heading, "a.sort").attributes["href"] == "?sort=-name"


@pytest.mark.parametrize("sort", ["alpha", "-alpha"])
def test_missing_values_come_last_in_both_directions(client: Client, sort: str) -> None:
    store_forecasts({})
    assert board_names(client, f"/?sort={sort}")[-1] == "Market"


def test_unknown_column_is_named(client: Client) -> None:
    store_forecasts({})
    assert "sort=price is not one of: rank, name" in visible_text(get_page(client, "/?sort=price", 404))


def test_trading_headline_says_how_old_the_unfinished_cohorts_are() -> None:
    families = [
        {"family": name.lower(), "external": False, "rank": rank, "display_name": name, "return_percent": mean,
         "return_ci": [low, mean + 1], "cohorts": 6}
        for rank, name, mean, low in ((1, "Ann", 9.0, 8.0), (2, "Bob", 5.0, 4.0), (3, "Cy", 4.0, 3.0))
    ]  # fmt: skip
    weeks = [AT - timedelta(weeks=age) for age in (6, 3, 1)]
    cohorts = [Cohort(number=n, week_start=start) for n, start in enumerate(weeks)]

    def words(entries: Any, cohorts: Any, p_holm: float | None = 0.01) -> tuple[str, str]:
        pairs = [{"first": rival, "second": "ann", "p_holm": p_holm} for rival in ("bob", "cy")]
        headline = trading_headline(entries, pairs, cohorts, at=AT)
        assert headline is not None
        return headline.sentence.replace("\u202f", " "), headline.line.replace("\u202f", " ")

    def sentence(*situation: Any) -> str:
        return words(*situation)[0]

    mean = "mean return +9.00 % (95 % interval of it alone +8.00 % to +10.00 %, paper money) over 6 cohorts"
    date = "15 March 2026."
    assert sentence(families, cohorts) == f"Ann returns most: {mean} (3 unfinished, 1 to 6 weeks old), {date}"
    cohorts[0].completed_at = cohorts[1].completed_at = AT
    assert sentence(families, cohorts) == f"Ann returns most: {mean} (1 unfinished, 1 week old), {date}"
    assert sentence(families[:1], []) == f"Ann is the only model that trades: {mean}, {date}"
    for p_holm in (0.05, None):  # although no interval overlaps that of the leader
        assert sentence(families, [], p_holm) == (
            "No test tells the 3 models apart in trading: highest mean return that of Ann,"
            f"{mean.removeprefix('mean return')}, {date}"
        )
    line = "mean return +9.00 % over 6 cohorts, paper money."
    assert words(families, cohorts)[1] == f"Ann returns most: {line}"
    highest = "highest mean return that of Ann, +9.00 %"
    assert words(families, cohorts, 0.05)[1] == (
        f"No test tells the 3 models apart in trading: {highest} over 6 cohorts, paper money."
    )
    families[0]["cohorts"] = 5
    few = f"Too few cohorts to tell who returns most, 5 of 6: {highest}"
    for p_holm in (0.01, 0.05):
        assert words(families, cohorts, p_holm)[1] == f"{few} over 5 cohorts, paper money."
        assert sentence(families, [], p_holm) == f"{few} (paper money) over 5 cohorts, {date}"


def test_some_lead_in_trading_where_tests_tell_them_from_the_others() -> None:
    families = [
        {"family": name.lower(), "external": False, "rank": rank, "display_name": name, "return_percent": 9.0,
         "return_ci": None, "cohorts": 6} for rank, name in enumerate(("Ann", "Bob", "Cy"), 1)
    ]  # fmt: skip
    pairs = [{"first": "ann", "second": "bob", "p_holm": 0.2}, {"first": "ann", "second": "cy", "p_holm": 0.01}]
    headline = trading_headline(families, pairs, [], at=AT)
    assert headline is not None
    assert headline.line.replace("\u202f", " ") == (
        "Ann and Bob lead in trading; no test tells them apart: highest mean return that of Ann, +9.00 % over 6"
        " cohorts, paper money."
    )


def agents_words(
    protocol: str, p_holm: float | None, *, rivals: int = 2, events: int = 12, other: float = 0.2, **report: Any
) -> tuple[str, str]:
    """The headline of the external agents Ann, Bob and Cy, and the title of its chart."""
    score = (
        {"score": 0.1, "score_ci": [0.09, 0.11]} if protocol == "forecast" else {"score": 9.0, "score_ci": [8.0, 10.0]}
    )
    entries = [
        {"forecaster": name.lower(), "display_name": name, "external": True, "rank": rank, "answered": 51, "cohorts": 2}
        | score
        for rank, name in enumerate(("Ann", "Bob", "Cy")[: rivals + 1], 1)
    ]
    data = {"events": events, "freedom": 8.0} if protocol == "forecast" else {"cohorts": 6, "freedom": 8.0}
    pairs = [{"first": "ann", "second": "bob", "p_holm": p_holm, **data}]
    pairs.append({"first": "ann", "second": "cy", "p_holm": other, **data})
    board = AgentsBoard(track="open", protocol=protocol, entries=entries, report={"pairs": pairs, **report})
    headline = agents_headline(board, competition_index(), at=AT)
    assert headline is not None
    return headline.sentence.replace("\u202f", " "), leader_title(headline, "leads").replace("\u202f", " ")


def test_headline_of_agents_names_their_prompt_condition() -> None:
    words, title = agents_words("forecast", 0.01)
    track = "of the open track when shown the market’s prices"
    value = "adjusted Brier score 0.100 (95 % interval 0.090–0.110) on 51 resolved questions, 15 March 2026."
    assert words == f"Ann and Cy lead the external agents {track}; no test tells them apart: {value}"
    assert title == f"Ann leads {track}, statistically tied with 1 other."
    words, _ = agents_words("forecast", None, rivals=0)
    assert words == f"Ann is the only ranked external agent {track}: {value}"
    words, _ = agents_words("forecast", 0.01, rivals=1)
    assert words == f"Ann leads the external agents {track}: {value}"
    words, _ = agents_words("forecast", 0.01, other=0.01, events=9)
    assert words == f"Too little data to tell who leads the external agents {track}, 15 March 2026."
    words, _ = agents_words("forecast", 0.2)
    assert words == f"No test tells the 3 external agents {track} apart; Ann stands first: {value}"


def test_headline_of_agents_says_how_old_the_leaders_unfinished_cohorts_are() -> None:
    completion = {"status": Cohort.Status.COMPLETED, "completed_at": AT}
    for number, age in enumerate((3, 2, 1, 0), 1):
        CohortFactory(number=number, week_start=AT - timedelta(weeks=age), **(completion if age == 3 else {}))
    weeks = {"ann": {"1": {}, "2": {}}, "bob": {"2": {}, "3": {}}}
    value = "mean return +9.00 % (95 % interval of it alone +8.00 % to +10.00 %, paper money)"
    value += " over 2 cohorts (1 unfinished, 2 weeks old), 15 March 2026."
    words, title = agents_words("trading", 0.01, weeks=weeks)
    assert words == f"Ann and Cy lead the external agents of the open track; no test tells them apart: {value}"
    assert title.startswith(
        "Ann leads of the open track over 2 cohorts (1 unfinished, 2 weeks old), statistically tied"
    )


def store_both(*, without: tuple[float, float, float, float], leads: Any = None) -> None:
    """The board of store_forecasts, and one without prices with these scores; every model is compared with the market.

    With prices the first two models beat it, and the last trails; without prices none does.
    """
    store_forecasts(dict.fromkeys(list(NAMES)[1:], 0.001))
    board = Leaderboard.objects.get(arm="priced")
    tests = {}
    for slug, difference, p in zip(NAMES, (0.1, 0.05, 0.01, -0.1), (0.001, 0.04, 0.2, 0.01), strict=True):
        tests[slug] = {"difference": difference, "p_holm": p, "margin": 0.05, "events": 12, "freedom": 8.0}
    board.report |= {"market": tests} | ({"leads": leads} if leads else {})
    board.save()
    entries = [entry(slug, brier, rank) for rank, (slug, brier) in enumerate(zip(NAMES, without, strict=True), 1)]
    market = {slug: {"difference": 0.1, "p_holm": 0.05, "margin": 0.05, "events": 12, "freedom": 8.0} for slug in NAMES}
    report = {"pairs": [], "data": {"questions": 40, "events": 12, "forecasts": 160}, "market": market}
    entries.append(entry("market", 0.2, 5))
    store_leaderboards({LeaderboardKey("forecast", arm="blind"): LeaderboardContents(entries, report)}, at=AT)


def test_slope_chart_has_a_line_for_each_model_from_with_to_without_prices(client: Client) -> None:
    store_both(without=(0.24, 0.26, 0.28, 0.3))
    page = get_page(client, "/forecasts/")
    figure = element(page, "#prices")
    lines = [visible_text(line) for line in elements(figure, "svg .curve")]
    assert lines[0].split() == ["0.100", "0.240", "GPT-5.2"]
    assert lines[-1].split() == ["0.200", "0.200", "Market"]
    assert "uniform" not in visible_text(figure).lower()
    text = visible_text(figure)
    assert "with the market’s prices" in text
    assert "without prices" in text
    assert visible_text(figure, ".figure-title") == (
        "GPT-5.2 has the lowest Brier score when shown the market’s prices. GPT-5.2 has the lowest Brier score without"
        " the market’s prices."
    )
    rows = client.get("/forecasts/charts/prices.csv").content.decode().splitlines()
    assert rows[:3] == [
        "forecaster,side,value,low,high",
        "GPT-5.2,with the market’s prices,0.1,0.09,0.11",
        "GPT-5.2,without prices,0.24,0.23,0.25",
    ]


def test_sentence_counts_who_beats_the_market_under_each_condition(client: Client) -> None:
    store_both(without=(0.24, 0.26, 0.28, 0.3))
    against, trading = (visible_text(node) for node in elements(get_page(client, "/"), ".short-answer"))
    assert against.startswith(
        "Against the market. 2 of 4 models beat the market’s prices when shown them (GPT-5.2 and Claude Opus 4.5); no"
        " model is shown to do so without them, by corrected paired tests."
    )
    assert trading.startswith("Trading. No portfolio has been valued yet.")


ENDS = ["2026-03-08T00:00:00+00:00", "2026-03-15T00:00:00+00:00"]


def test_lead_over_time_names_who_scores_best_and_marks_changes_of_release(client: Client) -> None:
    points = {
        "gpt-5.1": [[0.01, None, None, 3], [0.03, 0.01, 0.05, 8]], "grok-4": [[0.02, 0.01, 0.04, 5], None],
        "kimi-k2": [None, None],
    }  # fmt: skip
    store_both(without=(0.24, 0.26, 0.28, 0.3), leads={"ends": ENDS, "forecasters": points})
    family = Family.objects.get(slug="gpt-5.1")
    for number, (start, model) in enumerate(((AT - timedelta(days=14), "openai/a"), (AT, "openai/b")), 1):
        cohort = CohortFactory(number=number, week_start=start.replace(hour=0))
        AgentFactory(cohort=cohort, family=family, model_id=model)
    page = get_page(client, "/forecasts/")
    assert visible_text(page, "#leads .figure-title") == (
        "GPT-5.2 scores best against the market’s prices when shown the market’s prices, in forecasts of the four weeks"
        " to 15 Mar 2026 (+0.030, 95 % interval of it alone +0.010 to +0.050); Grok 4.1 did in those to 8 Mar 2026."
    )
    marks = [visible_text(mark) for mark in elements(page, "#leads .events .release")]
    assert marks == ["GPT-5.2 is openai/b from 15 Mar 2026 on"]
    rows = client.get("/forecasts/charts/leads.csv").content.decode().splitlines()
    assert rows[0] == "series,time_utc,difference_in_brier_score,low,high"
    assert len(rows) == 1 + 3 + 1


FEW, MANY = [0.09, None, None, 3], [0.02, 0.01, 0.03, 4]
UNSHOWN = [0.03, -0.01, 0.07, 8]


@pytest.mark.parametrize(
    ("gpt", "grok", "words"),
    [
        ([None, MANY], [FEW, None], "GPT-5.2 (+0.020, 95 % interval of it alone +0.010 to +0.030)."),
        (
            [MANY, MANY],
            [FEW, FEW],
            "GPT-5.2 (+0.020, 95 % interval of it alone +0.010 to +0.030); it also did in those to 8 Mar 2026.",
        ),
        (
            [None, UNSHOWN],
            [MANY, None],
            "GPT-5.2 (+0.030, 95 % interval of it alone −0.010 to +0.070); no difference is shown.",
        ),
        ([MANY, None], [None, FEW], "Grok 4.1 (+0.090, no interval yet); no difference is shown."),
    ],
)
def test_lead_over_time_claims_nothing_by_few_events_or_an_interval_with_0(
    client: Client, gpt: Any, grok: Any, words: str
) -> None:
    leads = {"ends": ENDS, "forecasters": {"gpt-5.1": gpt, "grok-4": grok}}
    store_both(without=(0.24, 0.26, 0.28, 0.3), leads=leads)
    best = " scores best against the market’s prices when shown the market’s prices, in forecasts of the four weeks to"
    title = visible_text(get_page(client, "/forecasts/"), "#leads .figure-title")
    assert title.replace(f"{best} 15 Mar 2026", "") == words


@pytest.mark.parametrize(
    ("mean", "without", "sentence"),
    [
        (20.0, 5.0, "One bet makes 75 % of the profit of Ann: without it the mean return is +5.00 %."),
        (20.0, -5.0, "One bet makes more than all of the profit of Ann: without it the mean return is −5.00 %."),
        (20.0, 25.0, "The largest bet of Ann lost money: without it the mean return is +25.00 %."),
        (-2.0, -6.0, "The largest bet of Ann made money: without it the mean return is −6.00 %."),
        (20.0, None, ""),
    ],
)
def test_sentence_says_how_much_of_a_profit_is_one_bet(mean: float, without: float | None, sentence: str) -> None:
    leader = {"display_name": "Ann", "return_percent": mean, "return_without_largest_bet": without}
    assert largest_bet_sentence(leader).replace("\u202f", " ") == sentence
