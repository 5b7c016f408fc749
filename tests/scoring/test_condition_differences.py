"""What conditions add: paired differences, their page and endpoint, and what leaves the boards of a condition."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from agents.models import Forecast, RunSetting
from cohorts.conditions import stored_conditions
from markets.models import EvidenceSnippet, Question
from scoring.models import Leaderboard
from scoring.selectors.condition_differences import ConditionDifference, condition_figures, effects
from scoring.services.scores import compute_scores
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question
from tests.guards import guards_removed
from tests.markup import element, elements, get_page, links, section, table_rows, visible_text
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)
DAY = timedelta(days=1)
GPT, GROK = "gpt-5.1", "grok-4"
CONDITIONS = "/api/v1/comparisons/conditions/"


def rain(number: int, days: int = 1, *, methodology: str = "v2", **chances: float) -> Question:
    """A question of its own event that resolves to YES, with GPT's chance of it by condition, on each day the same."""
    question = QuestionFactory(markets=[MarketFactory(question=f"Will it rain in town {number}?")])
    for day in range(days):
        for arm, chance in chances.items():
            ask(question, {GPT: [chance, 1 - chance]}, arm=arm, day=WEEK + day * DAY, methodology=methodology)
    return question


def resolve_all() -> None:
    for question in Question.objects.filter(status="open"):
        end_question(question, "YES", at=WEEK + 5 * DAY)
    compute_scores(at=END)


def rows(client: Client, **query: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = client.get(CONDITIONS, query).json()["results"]
    return listed


def test_difference_is_the_mean_over_common_questions_each_counted_once(client: Client) -> None:
    rain(1, days=2, priced=0.9, blind=0.6)
    rain(2, priced=0.8, blind=0.6)
    rain(3, priced=0.9)  # no common question
    resolve_all()
    (row,) = rows(client)
    assert (row["family"], row["condition_a"], row["condition_b"]) == (GPT, "priced", "blind")
    assert (row["n"], row["forecasts"], row["events"]) == (2, 3, 2)
    # Brier of YES at p: (1 - p)². The first question, asked on two days, weighs as much as the second.
    assert row["difference"] == pytest.approx(((0.1**2 - 0.4**2) + (0.2**2 - 0.4**2)) / 2)


def play() -> None:
    """Twelve questions on which prices help GPT, and Grok not."""
    for number in range(12):
        question = rain(number, priced=0.9 - number / 100, blind=0.6)
        for arm in ("priced", "blind"):
            ask(question, {GROK: [0.5 + number / 50, 0.5 - number / 50]}, arm=arm)
    resolve_all()


record = shared_rows(play)


def test_p_is_corrected_for_all_models_and_pairs(record: None, client: Client) -> None:
    by_family = {row["family"]: row for row in rows(client)}
    gpt, grok = by_family[GPT], by_family[GROK]
    assert gpt["p_adjusted"] == pytest.approx(2 * gpt["p"])
    assert gpt["interval"][1] < 0
    assert "forecasts better with the market’s prices than without prices" in gpt["sentence"]
    assert (grok["difference"], grok["p"], grok["interval"]) == (0, 1, None)
    assert "neither significantly better nor worse" in grok["sentence"]


def test_differences_follow_forecasts_of_another_arm_than_the_boards() -> None:
    rain(1, priced=0.9, blind=0.6)
    later = rain(2, priced=0.8)
    resolve_all()
    assert [row.n for row in condition_figures().differences] == [1]
    ask(later, {GPT: [0.6, 0.4]}, arm="blind")
    compute_scores(at=END + DAY)
    assert [row.n for row in condition_figures().differences] == [2]


def test_page_shows_rows_chart_and_what_prices_do(record: None, client: Client) -> None:
    page = get_page(client, "/conditions/")
    text = visible_text(page)
    assert "Prices are shown to lower the Brier score of 1 of 2 models, by corrected paired tests." in text
    assert "7 Apr 2026" in text, "the date of the leaderboards that the figures go with"
    assert any("GPT-5.2" in row[0] and "without prices" in row[2] for row in table_rows(section(page, "pairs")))
    assert "GPT-5.2" in visible_text(element(page, "figure.intervals"))
    for extension in ("csv", "png", "svg"):
        assert any(f"charts/differences.{extension}" in link for link in links(page))
        assert client.get(f"/conditions/charts/differences.{extension}").status_code == 200
    assert "/conditions/" in links(element(page, "nav[aria-label=Forecasts]"))
    assert not elements(page, "#samples")


def test_page_and_list_of_an_empty_arena(client: Client) -> None:
    assert "Nothing to compare yet" in visible_text(get_page(client, "/conditions/"))
    assert rows(client) == []


def test_richer_condition_comes_first_and_each_part_has_its_sentence(client: Client) -> None:
    for number in range(12):
        rain(number, methodology="v3", priced=0.8, blind=0.6, evidence=0.9 - number / 100, search=0.6)
    resolve_all()
    pairs = {(row["condition_a"], row["condition_b"]) for row in rows(client)}
    assert {("priced", "blind"), ("evidence", "blind"), ("search", "blind"), ("evidence", "search")} <= pairs
    text = visible_text(get_page(client, "/conditions/?pair=evidence-blind"))
    assert "Evidence is shown to lower the Brier score of 1 of 1 model, by corrected paired tests." in text
    assert "A search tool is shown to lower the Brier score of none of 1 model, by corrected paired tests." in text
    assert client.get("/conditions/?pair=priced-x").status_code == 404
    page = get_page(client, "/forecasts/")
    assert {"?arm=blind", "?arm=evidence", "?arm=search"} <= set(links(page))
    assert "with evidence, without prices" in visible_text(page)
    assert "GPT-5.2" in visible_text(get_page(client, "/forecasts/?arm=evidence"))


def test_unknown_condition_is_refused_with_the_known_ones(client: Client) -> None:
    for path in ("leaderboard/?protocol=forecast&", "calibration/?", "elicitations/?"):
        answer = client.get(f"/api/v1/{path}arm=deaf")
        assert answer.status_code == 400
        assert answer.json()["errors"]["arm"] == ["deaf is unknown; known are priced, blind, evidence, full, search"]
    assert client.get("/api/v1/leaderboard/?protocol=forecast&arm=full").json()["results"] == []


def test_forecasts_that_saw_the_outcome_leave_the_board_of_their_condition_visibly(client: Client) -> None:
    questions = []
    for number, (evidence, search) in enumerate(((0.9, 0.9), (0.6, 0.6), (0.6, 0.8))):
        questions.append(rain(number, methodology="v3", evidence=evidence, search=search, priced=0.9))
    resolve_all()
    assert (entry("evidence")["n"], entry("search")["n"]) == (3, 3)
    snippet = EvidenceSnippet(
        entry=questions[0].entries.get(),
        position=1,
        text="It rained in town 1.",
        retrieved_at=WEEK,
        sha256="0" * 64,
        states_outcome=True,
        audited_at=END,
    )
    with guards_removed():
        snippet.save()
        for question, reason in ((questions[0], "polymarket.com"), (questions[2], "searched, results unknown")):
            Forecast.objects.filter(question=question, arm="search").update(excluded=reason)
    compute_scores(at=END + DAY)
    assert (entry("evidence")["n"], entry("evidence")["coverage"]) == (2, 1.0)
    assert entry("evidence")["brier"] == pytest.approx(0.16)
    assert entry("priced")["n"] == 3
    note = "Left out. 1 resolved question, since a snippet of the evidence states the outcome."
    assert note in visible_text(get_page(client, "/forecasts/?arm=evidence"))
    assert "Left out" not in visible_text(get_page(client, "/forecasts/"))
    common = {frozenset((row.condition_a, row.condition_b)): row.n for row in condition_figures().differences}
    assert (common[frozenset(("evidence", "priced"))], common[frozenset(("search", "priced"))]) == (2, 1)
    assert (entry("search")["n"], entry("search")["brier"]) == (1, pytest.approx(0.16))
    text = visible_text(get_page(client, "/forecasts/?arm=search"))
    assert "1 forecast, since a search led to an excluded site. 1 forecast by searches whose results are not" in text


def entry(arm: str) -> dict[str, Any]:
    board = Leaderboard.objects.get(protocol="forecast", arm=arm, methodology="", category="")
    return next(row for row in board.entries if row["forecaster"] == GPT)


def test_methodologies_state_their_conditions_and_which_are_asked(client: Client, settings: Any) -> None:
    assert client.get("/api/v1/methodologies/v1/").json()["conditions"] == []
    assert client.get("/api/v1/methodologies/v1/").json()["board_condition"] is None
    v2 = client.get("/api/v1/methodologies/v2/").json()
    assert (v2["board_condition"], [row["name"] for row in v2["conditions"]]) == ("priced", ["priced", "blind"])
    settings.ARENA_EVIDENCE = "file:/nowhere"
    RunSetting.objects.create(protocol="forecast", condition="blind", paused=True)
    v3 = client.get("/api/v1/methodologies/v3/").json()
    on = {row["name"]: row["on"] for row in v3["conditions"]}
    assert on == {"priced": True, "blind": False, "evidence": True, "full": True, "search": False}
    assert v3["board_condition"] == "priced"
    search = v3["conditions"][-1]
    assert (search["blocks"], search["tools"]["engine"], search["samples"]) == (["rules"], "exa", 1)
    assert v3["conditions"][0]["tools"] is None


def test_differences_of_one_family_and_none_of_an_unknown_one(record: None, client: Client) -> None:
    assert [row["family"] for row in rows(client)] == [GPT, GROK]
    assert [row["family"] for row in rows(client, family=GROK)] == [GROK]
    refused = client.get(CONDITIONS, {"family": "nobody"})
    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["family"])


ROW = {"family": GPT, "condition_a": "priced", "condition_b": "blind", "n": 20, "forecasts": 40, "difference": -0.02}
LOWER = "Prices are shown to lower the Brier score of {} of 1 model, by corrected paired tests."
SURE = {"p": 0.001, "p_adjusted": 0.002, "interval": [-0.03, -0.01]}
BASIS = "95 % interval −0.0300 to −0.0100, corrected p = 0.002, on 20 common questions"


@pytest.mark.parametrize(
    ("changes", "sentence", "effect"),
    [
        (
            {"events": 10, **SURE}, "GPT-5.2 forecasts better with the market’s prices than without prices: its Brier"
            f" score is 0.0200 lower ({BASIS}).", LOWER.format("1"),
        ),
        (
            {"events": 10, **SURE, "difference": 0.02, "interval": [0.01, 0.03]}, "GPT-5.2 forecasts worse with the"
            " market’s prices than without prices: its Brier score is 0.0200 higher (95 % interval +0.0100 to +0.0300,"
            " corrected p = 0.002, on 20 common questions).",
            LOWER.format("none").replace("model,", "model and to raise that of 1,"),
        ),
        (
            {"events": 10, **SURE, "p_adjusted": 0.05, "interval": None}, "GPT-5.2 forecasts neither significantly"
            " better nor worse with the market’s prices than without prices: its Brier score differs by 0.0200 (on 20"
            " common questions).", LOWER.format("none"),
        ),
        (
            {"events": 9, **SURE}, "GPT-5.2 with the market’s prices and without prices: too few events of common"
            " questions for a claim yet, 9 of the 10 that it needs.", "Prices: too few events for a claim yet.",
        ),
    ],
)  # fmt: skip
def test_sentences_of_a_difference(changes: dict[str, Any], sentence: str, effect: str) -> None:
    conditions = stored_conditions()
    row = ConditionDifference(**{**ROW, **changes})
    assert row.sentence("GPT-5.2", conditions) == sentence
    assert effects([row], conditions) == [effect]
