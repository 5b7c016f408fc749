"""Calibration, comparisons and elicitations for readers: what is refused, what there is before anything was played."""

from typing import Any

import pytest
from django.test import Client

from agents.models import Family
from scoring.calibration_api import EXAMPLE as CALIBRATION
from scoring.comparison_api import EXAMPLE as COMPARISON
from tests.factories import CohortFactory, MarketFactory, QuestionFactory, asked, bet
from tests.scoring.test_board_pages import GPT, GROK, a_season, agent_of

pytestmark = pytest.mark.django_db


def get(client: Client, path: str, code: int = 200, **query: str) -> Any:
    answer = client.get(f"/api/v1/{path}", query)
    assert answer.status_code == code, answer.content
    return answer.json()


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("calibration/", {"arm": "deaf"}, "deaf is unknown; known are priced, blind"),
        ("calibration/", {"methodology": "v9"}, "no methodology has the version v9"),
        ("calibration/", {"category": "Moons"}, "no market has the category Moons"),
        ("calibration/", {"mood": "bad"}, "unknown parameter; known are arm, category, methodology"),
        (f"comparisons/{GPT}/{GROK}/", {"mood": "bad"}, "takes no parameters"),
        ("elicitations/", {"arm": "deaf"}, "deaf is unknown; known are priced, blind"),
        ("elicitations/", {"family": "gpt-9"}, "no family has the slug gpt-9"),
        ("elicitations/", {"methodology": "v9"}, "no methodology has the version v9"),
        ("forecasts/", {"elicitation": "99"}, "no elicitation has the id 99"),
    ],
)
def test_what_is_unknown_is_refused_by_its_name(client: Client, path: str, query: dict[str, str], said: str) -> None:
    assert get(client, path, 400, **query) == {next(iter(query)): [said]}


@pytest.mark.parametrize("pair", [f"{GPT}/{GPT}", f"{GPT}/nobody", f"nobody/{GPT}"])
def test_nobody_is_compared_with_oneself_or_a_stranger(client: Client, pair: str) -> None:
    assert list(get(client, f"comparisons/{pair}/", 404)) == ["detail"]


def test_before_anything_was_played_nobody_is_calibrated_or_ahead(client: Client) -> None:
    nothing = {"computed_at": None, "forecasters": []}
    assert get(client, "calibration/") == {
        "arm": "priced", "methodology": None, "category": None, "words": nothing, "bets": nothing, "stakes": [],
    }  # fmt: skip
    told = get(client, f"comparisons/{GPT}/{GROK}/")
    assert told["bets"] == {
        "first": None, "second": None, "first_ahead": 0, "second_ahead": 0, "test": None, "cohorts": [],
    }  # fmt: skip
    assert (told["opposed"], told["disagreements"]) == ({"markets": 0, "most": []}, [])


def keys(value: Any) -> Any:
    """The names in an answer, in the first row of each list."""
    if isinstance(value, dict):
        return {name: keys(inner) for name, inner in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None


def test_the_examples_of_the_documentation_are_like_the_answers(client: Client) -> None:
    a_season()
    calibration = get(client, "calibration/")
    calibration["bets"]["forecasters"] = []
    assert keys(calibration) == keys(CALIBRATION)
    comparison = get(client, f"comparisons/{GPT}/{GROK}/")
    for side in (comparison["bets"], *comparison["words"]):
        assert (side["first"]["family"], side["second"]["family"]) == (GPT, GROK)
        side["first"] = side["second"] = None
    assert keys(comparison) == keys(COMPARISON)


def test_the_other_way_round_only_the_signs_change(client: Client) -> None:
    a_season()
    one, other = (get(client, f"comparisons/{pair}/") for pair in (f"{GPT}/{GROK}", f"{GROK}/{GPT}"))
    assert one["bets"]["test"]["difference"] == -other["bets"]["test"]["difference"] != 0
    assert one["words"][0]["test"]["difference"] == -other["words"][0]["test"]["difference"] != 0
    assert one["bets"]["first_ahead"] == other["bets"]["second_ahead"]
    assert [(m["first_return"], m["second_return"]) for m in one["bets"]["cohorts"]] == [
        (m["second_return"], m["first_return"]) for m in other["bets"]["cohorts"]
    ]


def test_an_elicitation_is_told_with_its_cost_and_narrowed_by_what_it_is_of(client: Client) -> None:
    question = QuestionFactory()
    asked(question, {GPT: (0.7, 0.3), GROK: (0.4, 0.6)}, cost="0.02")
    asked(question, {GPT: (0.6, 0.4)}, arm="blind", cost="0.03")
    rows = get(client, "elicitations/")["results"]
    assert [(row["family"], row["arm"], row["cost_usd"]) for row in rows] == [
        (GPT, "priced", "0.020000"), (GROK, "priced", "0.020000"), (GPT, "blind", "0.030000"),
    ]  # fmt: skip
    assert get(client, "elicitations/", family=GPT, arm="blind")["results"] == rows[2:]
    assert get(client, "elicitations/", methodology="v2", status="completed")["count"] == 3
    one = get(client, f"elicitations/{rows[0]['id']}/")
    assert {name: one[name] for name in rows[0]} == rows[0]
    assert [call["cost_usd"] for call in one["calls"]] == ["0.020000"]
    (said,) = get(client, "forecasts/", elicitation=str(rows[1]["id"]))["results"]
    assert (said["family"], said["elicitation"]) == (GROK, rows[1]["id"])


# --- pages that lead to a comparison ----------------------------------------------------------------------


def test_a_reader_chooses_two_on_the_leaderboard_and_is_led_to_their_comparison(client: Client) -> None:
    a_season()
    board = client.get("/").content.decode()
    assert '<form class="filters" method="get" action="/compare/">' in board
    assert f'<option value="{GPT}">' in board
    answer = client.get("/compare/", {"first": GPT, "second": GROK})
    assert (answer.status_code, answer["Location"]) == (302, f"/compare/{GPT}/{GROK}/")


def test_whoever_chooses_one_twice_is_told_so_and_a_stranger_is_not_found(client: Client) -> None:
    answer = client.get("/compare/", {"first": GPT, "second": GPT})
    assert answer.status_code == 200
    assert "choose two" in answer.content.decode()
    assert f'<option value="{GPT}" selected>' in answer.content.decode()
    assert client.get("/compare/", {"first": GPT, "second": "nobody"}).status_code == 404


def test_a_familys_page_leads_to_its_comparison_with_each_other(client: Client) -> None:
    shown = client.get(f"/models/{GPT}/").content.decode()
    others = Family.objects.exclude(slug=GPT)
    assert others.count() == 6
    for other in others:
        assert f'href="/compare/{GPT}/{other.slug}/"' in shown


def test_who_staked_equal_sums_on_two_sides_is_held_to_the_first(client: Client) -> None:
    market, cohort = MarketFactory(), CohortFactory()
    both, other = agent_of(GPT, cohort), agent_of(GROK, cohort)
    bet(both, market, "NO", "300.00")
    bet(both, market, "YES", "300.00")
    bet(other, market, "NO", "200.00")

    (told,) = get(client, f"comparisons/{GPT}/{GROK}/")["opposed"]["most"]

    assert (told["first_side"], told["first_amount"]) == ("YES", "300.00")
    assert (told["second_side"], told["second_amount"]) == ("NO", "200.00")
