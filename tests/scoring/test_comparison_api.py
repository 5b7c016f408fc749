"""The calibration, comparison and elicitation endpoints."""

from typing import Any

import pytest
from django.test import Client

from agents.models import Family
from agents.models.family import name_slug
from tests.arena_site.pages.test_board_pages import GPT, GROK, create_season
from tests.factories import AgentFactory, CohortFactory, MarketFactory, QuestionFactory, ask, bet
from tests.problems import errors, problem
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
season = shared_rows(create_season)


def get(client: Client, path: str, code: int = 200, **query: str) -> Any:
    answer = client.get(f"/api/v1/{path}", query)
    assert answer.status_code == code, answer.content
    return answer.json()


@pytest.mark.parametrize(
    ("path", "query", "error"),
    [
        ("calibration/", {"arm": "deaf"}, "deaf is unknown; known are priced, blind"),
        ("calibration/", {"methodology": "v9"}, "no methodology has the version v9"),
        ("calibration/", {"category": "Moons"}, "no market has the category Moons"),
        ("calibration/", {"mood": "bad"}, "unknown parameter; known are arm, category, methodology"),
        (f"comparisons/{GPT}/{GROK}/", {"mood": "bad"}, "takes no parameters"),
        ("leaderboard/", {"protocol": "poker"}, "poker is unknown; known are trading, forecast"),
        ("leaderboard/", {"methodology": "v9"}, "no methodology has the version v9"),
        ("leaderboard/", {"category": "Poetry"}, "no market has the category Poetry"),
        (
            "leaderboard/",
            {"as_of": "yesterday"},
            "'yesterday' is not an ISO-8601 time; write it like 2026-03-08T00:05:00Z",
        ),
        ("performance/", {"range": "2W"}, "2W is unknown; known are 10M, 1H, 1D, 1W, 1M, 3M, ALL"),
        ("performance/", {"cohort": "9"}, "no cohort has the number 9"),
        ("performance/", {"cohort": "x"}, "no cohort has the number x"),
        ("performance/", {"family": "gpt-9"}, "no family has the slug gpt-9"),
        ("performance/", {"methodology": "v9"}, "no methodology has the version v9"),
        ("leaderboard/", {"as_of": "2026-03-08T00:00:00"}, "has no time zone"),
        ("performance/", {"mood": "bad"}, "unknown parameter; known are cohort, family, methodology, range"),
    ],
)
def test_refused_parameter_is_a_400_that_names_it(client: Client, path: str, query: dict[str, str], error: str) -> None:
    ((name, (message,)),) = errors(client.get(f"/api/v1/{path}", query)).items()
    assert {name} == query.keys()
    assert error in message


@pytest.mark.parametrize("path", ["leaderboard/", "agents-board/"])
def test_nothing_is_found_as_of_the_future(client: Client, path: str) -> None:
    error = problem(client.get(f"/api/v1/{path}", {"as_of": "9000-01-01"}), 404)
    assert error["detail"] == "as_of: 9000-01-01T00:00:00Z is in the future"


def test_trading_leaderboard_has_no_arm(client: Client) -> None:
    error = problem(client.get("/api/v1/leaderboard/", {"arm": "blind"}), 404)
    assert error["detail"] == "arm: the trading protocol has none; ask with protocol=forecast"


@pytest.mark.parametrize("pair", [f"{GPT}/{GPT}", f"{GPT}/nobody", f"nobody/{GPT}"])
def test_comparison_with_itself_or_an_unknown_family_is_not_found(client: Client, pair: str) -> None:
    problem(client.get(f"/api/v1/comparisons/{pair}/"), 404)


def test_empty_arena_has_no_calibration_and_no_comparison(client: Client) -> None:
    empty = {"computed_at": None, "forecasters": []}
    assert get(client, "calibration/") == {
        "arm": "priced", "methodology": None, "category": None, "forecasts": empty, "trades": empty, "stakes": [],
    }  # fmt: skip
    comparison = get(client, f"comparisons/{GPT}/{GROK}/")
    assert comparison["trades"] == {
        "first": None, "second": None, "first_ahead": 0, "second_ahead": 0, "test": None, "cohorts": [],
    }  # fmt: skip
    assert (comparison["position_disagreements"], comparison["disagreements"]) == ({"markets": 0, "largest": []}, [])


def test_comparison_has_the_entries_of_both_families(client: Client, season: None) -> None:
    comparison = get(client, f"comparisons/{GPT}/{GROK}/")
    for side in (comparison["trades"], *comparison["forecasts"]):
        assert (side["first"]["family"], side["second"]["family"]) == (GPT, GROK)


def test_swapping_the_families_changes_only_the_signs(client: Client, season: None) -> None:
    one, second = (get(client, f"comparisons/{pair}/") for pair in (f"{GPT}/{GROK}", f"{GROK}/{GPT}"))
    assert one["trades"]["test"]["difference"] == -second["trades"]["test"]["difference"] != 0
    assert one["forecasts"][0]["test"]["difference"] == -second["forecasts"][0]["test"]["difference"] != 0
    assert one["trades"]["first_ahead"] == second["trades"]["second_ahead"]
    assert [(m["first_return"], m["second_return"]) for m in one["trades"]["cohorts"]] == [
        (m["second_return"], m["first_return"]) for m in second["trades"]["cohorts"]
    ]


def test_elicitations_show_their_cost_and_lead_to_their_forecasts(client: Client) -> None:
    question = QuestionFactory()
    ask(question, {GPT: (0.7, 0.3), GROK: (0.4, 0.6)}, cost="0.02")
    ask(question, {GPT: (0.6, 0.4)}, arm="blind", cost="0.03")
    rows = get(client, "elicitations/")["results"]
    assert [(row["family"], row["arm"], row["cost_usd"]) for row in rows] == [
        (GPT, "priced", "0.020000"), (GROK, "priced", "0.020000"), (GPT, "blind", "0.030000"),
    ]  # fmt: skip
    one = get(client, f"elicitations/{rows[0]['id']}/")
    assert {name: one[name] for name in rows[0]} == rows[0]
    assert [call["cost_usd"] for call in one["calls"]] == ["0.020000"]
    (forecast,) = get(client, "forecasts/", elicitation=str(rows[1]["id"]))["results"]
    assert (forecast["family"], forecast["elicitation"]) == (GROK, rows[1]["id"])


# --- pages that lead to a comparison ----------------------------------------------------------------------


def test_form_of_the_leaderboard_leads_to_a_comparison(client: Client, season: None) -> None:
    leaderboard = client.get("/trading/").content.decode()
    assert '<form class="filters" method="get" action="/compare/">' in leaderboard
    assert f'<option value="{GPT}">' in leaderboard
    answer = client.get("/compare/", {"first": GPT, "second": GROK})
    assert (answer.status_code, answer["Location"]) == (302, "/compare/gpt-5.2/grok-4.1/")


def test_choosing_one_family_twice_is_refused_and_an_unknown_one_is_not_found(client: Client) -> None:
    answer = client.get("/compare/", {"first": GPT, "second": GPT})
    assert answer.status_code == 200
    assert "choose two" in answer.content.decode()
    assert f'<option value="{GPT}" selected>' in answer.content.decode()
    assert client.get("/compare/", {"first": GPT, "second": "nobody"}).status_code == 404


def test_family_page_links_its_comparison_with_every_other_family(client: Client) -> None:
    markup = client.get("/models/gpt-5.2/").content.decode()
    rivals = Family.objects.exclude(slug=GPT)
    assert rivals.count() == 6
    for rival in rivals:
        assert f'href="/compare/gpt-5.2/{name_slug(rival.display_name)}/"' in markup


def test_equal_stakes_on_both_sides_count_as_the_first_side(client: Client) -> None:
    market, cohort = MarketFactory(), CohortFactory()
    first_agent, other_agent = (AgentFactory(slug=slug, cohort=cohort) for slug in (GPT, GROK))
    bet(first_agent, market, "NO", "300.00")
    bet(first_agent, market, "YES", "300.00")
    bet(other_agent, market, "NO", "200.00")

    (disagreement,) = get(client, f"comparisons/{GPT}/{GROK}/")["position_disagreements"]["largest"]

    assert (disagreement["first_side"], disagreement["first_amount"]) == ("YES", "300.00")
    assert (disagreement["second_side"], disagreement["second_amount"]) == ("NO", "200.00")
