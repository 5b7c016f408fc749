"""The calibration, comparison and elicitation endpoints."""

from typing import Any

import pytest
from django.test import Client

from agents.models import Family
from scoring.api.calibration import EXAMPLE as CALIBRATION
from scoring.api.comparisons import EXAMPLE as COMPARISON
from tests.arena_site.pages.test_board_pages import GPT, GROK, a_season, agent_of
from tests.factories import CohortFactory, MarketFactory, QuestionFactory, asked, bet

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
def test_unknown_parameter_is_a_400_that_names_it(client: Client, path: str, query: dict[str, str], said: str) -> None:
    assert get(client, path, 400, **query) == {next(iter(query)): [said]}


@pytest.mark.parametrize("pair", [f"{GPT}/{GPT}", f"{GPT}/nobody", f"nobody/{GPT}"])
def test_comparison_with_itself_or_an_unknown_family_is_not_found(client: Client, pair: str) -> None:
    assert list(get(client, f"comparisons/{pair}/", 404)) == ["detail"]


def test_empty_arena_has_no_calibration_and_no_comparison(client: Client) -> None:
    nothing = {"computed_at": None, "forecasters": []}
    assert get(client, "calibration/") == {
        "arm": "priced", "methodology": None, "category": None, "forecasts": nothing, "trades": nothing, "stakes": [],
    }  # fmt: skip
    comparison = get(client, f"comparisons/{GPT}/{GROK}/")
    assert comparison["trades"] == {
        "first": None, "second": None, "first_ahead": 0, "second_ahead": 0, "test": None, "cohorts": [],
    }  # fmt: skip
    assert (comparison["position_disagreements"], comparison["disagreements"]) == ({"markets": 0, "largest": []}, [])


def keys(value: Any) -> Any:
    """The field names in a response, of the first row in each list."""
    if isinstance(value, dict):
        return {name: keys(inner) for name, inner in value.items()}
    return [keys(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None


def test_documented_examples_have_the_fields_of_responses(client: Client) -> None:
    a_season()
    calibration = get(client, "calibration/")
    calibration["trades"]["forecasters"] = []
    assert keys(calibration) == keys(CALIBRATION)
    comparison = get(client, f"comparisons/{GPT}/{GROK}/")
    for side in (comparison["trades"], *comparison["forecasts"]):
        assert (side["first"]["family"], side["second"]["family"]) == (GPT, GROK)
        side["first"] = side["second"] = None
    assert keys(comparison) == keys(COMPARISON)


def test_swapping_the_families_changes_only_the_signs(client: Client) -> None:
    a_season()
    one, other = (get(client, f"comparisons/{pair}/") for pair in (f"{GPT}/{GROK}", f"{GROK}/{GPT}"))
    assert one["trades"]["test"]["difference"] == -other["trades"]["test"]["difference"] != 0
    assert one["forecasts"][0]["test"]["difference"] == -other["forecasts"][0]["test"]["difference"] != 0
    assert one["trades"]["first_ahead"] == other["trades"]["second_ahead"]
    assert [(m["first_return"], m["second_return"]) for m in one["trades"]["cohorts"]] == [
        (m["second_return"], m["first_return"]) for m in other["trades"]["cohorts"]
    ]


def test_elicitations_show_their_cost_and_are_filtered(client: Client) -> None:
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
    (forecast,) = get(client, "forecasts/", elicitation=str(rows[1]["id"]))["results"]
    assert (forecast["family"], forecast["elicitation"]) == (GROK, rows[1]["id"])


# --- pages that lead to a comparison ----------------------------------------------------------------------


def test_form_of_the_leaderboard_leads_to_a_comparison(client: Client) -> None:
    a_season()
    board = client.get("/").content.decode()
    assert '<form class="filters" method="get" action="/compare/">' in board
    assert f'<option value="{GPT}">' in board
    answer = client.get("/compare/", {"first": GPT, "second": GROK})
    assert (answer.status_code, answer["Location"]) == (302, f"/compare/{GPT}/{GROK}/")


def test_choosing_one_family_twice_is_refused_and_an_unknown_one_is_not_found(client: Client) -> None:
    answer = client.get("/compare/", {"first": GPT, "second": GPT})
    assert answer.status_code == 200
    assert "choose two" in answer.content.decode()
    assert f'<option value="{GPT}" selected>' in answer.content.decode()
    assert client.get("/compare/", {"first": GPT, "second": "nobody"}).status_code == 404


def test_family_page_links_its_comparison_with_every_other_family(client: Client) -> None:
    shown = client.get(f"/models/{GPT}/").content.decode()
    others = Family.objects.exclude(slug=GPT)
    assert others.count() == 6
    for other in others:
        assert f'href="/compare/{GPT}/{other.slug}/"' in shown


def test_equal_stakes_on_both_sides_count_as_the_first_side(client: Client) -> None:
    market, cohort = MarketFactory(), CohortFactory()
    both, other = agent_of(GPT, cohort), agent_of(GROK, cohort)
    bet(both, market, "NO", "300.00")
    bet(both, market, "YES", "300.00")
    bet(other, market, "NO", "200.00")

    (disagreement,) = get(client, f"comparisons/{GPT}/{GROK}/")["position_disagreements"]["largest"]

    assert (disagreement["first_side"], disagreement["first_amount"]) == ("YES", "300.00")
    assert (disagreement["second_side"], disagreement["second_amount"]) == ("NO", "200.00")
