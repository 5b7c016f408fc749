"""Values over time, and leaderboards of past instants, as readers get them."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Agent, Family
from cohorts.models import Cohort, Methodology
from scoring.selectors.competition import competition_index
from scoring.selectors.performance import BUCKETS, MAX_BUCKETS, RANGES, performance, performances
from scoring.services.scores import compute_scores
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    MarketFactory,
    ReleaseFactory,
    SnapshotFactory,
    bet,
    play_week,
    resolve,
)
from tests.markup import chart_data, get_page
from tests.scoring.reads import statements

pytestmark = pytest.mark.django_db
HOUR, DAY, TEN = timedelta(hours=1), timedelta(days=1), timedelta(minutes=10)


def agent_of(slug: str, cohort: Cohort | None = None) -> Agent:
    return AgentFactory(cohort=cohort or CohortFactory(), family=Family.objects.get(slug=slug))


def worth(agent: Agent, values: dict[timedelta, int]) -> None:
    """Snapshots of an agent, each so long after the first week's start."""
    for after, value in values.items():
        SnapshotFactory(agent=agent, taken_at=WEEK + after, cash=Decimal(value))


def curves(client: Client, **query: Any) -> Any:
    answer = client.get("/api/v1/performance/", query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def points(client: Client, **query: Any) -> dict[str, list[tuple[str, str]]]:
    return {
        series["family"]: [(at.removeprefix("2026-03-"), value) for at, value in series["points"]]
        for series in curves(client, **query)["series"]
    }


def test_before_anything_was_recorded_there_is_no_curve(client: Client) -> None:
    AgentFactory()
    empty = {"as_of": None, "series": [], "release_changes": []}
    assert curves(client) == {"range": "ALL", "bucket_seconds": 600, **empty}
    assert curves(client, range="1W") == {"range": "1W", "bucket_seconds": 3600, **empty}


def test_each_bucket_ends_with_the_newest_value_in_it_and_the_last_with_the_newest_of_all(client: Client) -> None:
    worth(agent_of("grok-4"), {0 * DAY: 10000, 5 * TEN: 10050, HOUR: 10100, HOUR + TEN: 10200})
    body = curves(client, range="1W")
    assert (body["as_of"], body["bucket_seconds"]) == ("2026-03-08T01:10:00Z", 3600)
    (series,) = body["series"]
    assert series == {
        "family": "grok-4",
        "points": [
            ["2026-03-08T00:00:00Z", "10000.00"],
            ["2026-03-08T01:00:00Z", "10100.00"],
            ["2026-03-08T01:10:00Z", "10200.00"],
        ],
    }


@pytest.mark.parametrize(
    ("name", "first", "number"),
    [("10M", "14T23:50:00Z", 2), ("1H", "14T23:00:00Z", 7), ("1D", "14T00:00:00Z", 145), ("1W", "08T00:00:00Z", 169)],
)
def test_a_range_reaches_so_far_back_and_holds_what_was_before_it(
    client: Client, name: str, first: str, number: int
) -> None:
    worth(agent_of("grok-4"), {0 * DAY: 10000, 7 * DAY: 10500})
    lines = points(client, range=name)["grok-4"]
    assert (lines[0][0], len(lines)) == (first, number)
    assert [value for _, value in lines] == ["10000.00"] * (number - 1) + ["10500.00"]


@pytest.mark.parametrize("name", RANGES)
def test_no_range_has_more_points_than_a_chart_can_show(client: Client, name: str) -> None:
    worth(agent_of("grok-4"), {0 * DAY: 10000, 250 * DAY: 10500})
    body = curves(client, range=name)
    assert timedelta(seconds=body["bucket_seconds"]) in BUCKETS
    assert 2 <= len(body["series"][0]["points"]) <= MAX_BUCKETS + 2


def test_a_family_is_the_mean_over_its_cohorts_and_whoever_has_finished_stays_in_it(client: Client) -> None:
    """The first cohort ends after a day with 10,600; the second starts a week later at 10,000 and rises."""
    over, active_agent = agent_of("grok-4"), agent_of("grok-4")
    worth(over, {0 * DAY: 10000, DAY: 10600})
    over.cohort.status, over.cohort.completed_at = Cohort.Status.COMPLETED, WEEK + DAY
    over.cohort.save()
    Agent.objects.filter(pk=over.pk).update(cash=Decimal("10600.00"))
    worth(active_agent, {7 * DAY: 10000, 7 * DAY + TEN: 10100})
    assert points(client, range="10M") == {"grok-4": [("15T00:00:00Z", "10300.00"), ("15T00:10:00Z", "10350.00")]}
    assert points(client, range="10M", cohort=2)["grok-4"][-1] == ("15T00:10:00Z", "10100.00")
    (total,) = points(client).values()
    assert (total[0], total[-1]) == (("08T00:00:00Z", "10000.00"), ("15T00:10:00Z", "10350.00"))
    assert ("14T00:00:00Z", "10600.00") in total


def test_curves_can_be_narrowed_to_a_cohort_and_to_a_family(client: Client) -> None:
    cohort = CohortFactory()
    worth(agent_of("grok-4", cohort), {0 * DAY: 10000})
    worth(agent_of("gpt-5.1", cohort), {0 * DAY: 10100})
    worth(agent_of("gpt-5.1"), {7 * DAY: 9900})
    assert set(points(client)) == {"grok-4", "gpt-5.1"}
    assert points(client, family="gpt-5.1", cohort=1) == {"gpt-5.1": [("08T00:00:00Z", "10100.00")]}


def test_curves_can_be_narrowed_to_the_cohorts_of_a_version(client: Client) -> None:
    first, second = (CohortFactory(methodology=Methodology.objects.get(version=name)) for name in ("v1", "v2"))
    worth(agent_of("grok-4", first), {0 * DAY: 10000, 7 * DAY: 10600})
    worth(agent_of("grok-4", second), {7 * DAY: 10000})
    assert points(client)["grok-4"][-1] == ("15T00:00:00Z", "10300.00")
    assert points(client, methodology="v1")["grok-4"][-1] == ("15T00:00:00Z", "10600.00")
    assert points(client, methodology="v2") == {"grok-4": [("15T00:00:00Z", "10000.00")]}


def test_several_spans_are_read_at_once_and_each_is_what_it_is_alone(client: Client) -> None:
    play_week()
    play_week()
    agents, at = competition_index().agents, WEEK + 30 * DAY
    alone = {span: performance(agents, span=span, at=at) for span in RANGES.values()}
    assert performances(agents, spans=RANGES.values(), at=at) == alone
    apart = sum(statements(performance, agents, span=span, at=at) for span in RANGES.values())
    assert statements(performances, agents, spans=RANGES.values(), at=at) * len(RANGES) <= apart


def test_the_page_of_a_range_asks_no_more_of_the_database_than_that_of_the_whole(client: Client) -> None:
    play_week()
    play_week()
    for address in ("/cohorts/1/", "/cohorts/1/?range=1W"):
        assert client.get(address).status_code == 200
    assert statements(client.get, "/cohorts/1/?range=1W") == statements(client.get, "/cohorts/1/")


def test_a_change_of_release_is_told(client: Client) -> None:
    first = agent_of("gpt-5.1")
    newer = ReleaseFactory(family=first.family, model_id="openai/gpt-6", effective_from=WEEK + 2 * DAY)
    second = AgentFactory(cohort=CohortFactory(), family=first.family, release=newer)
    worth(first, {0 * DAY: 10000, 7 * DAY: 10000})
    worth(second, {7 * DAY: 10000, 9 * DAY: 10000})
    change = {
        "family": "gpt-5.1", "cohort": 2, "at": "2026-03-15T00:00:00Z",
        "before": "openai/gpt-5.2", "after": "openai/gpt-6",
    }  # fmt: skip
    assert curves(client)["release_changes"] == curves(client, range="1W")["release_changes"] == [change]
    assert curves(client, range="1D")["release_changes"] == []


def test_the_curve_of_the_page_has_the_values_of_the_api(client: Client) -> None:
    cohort = CohortFactory()
    for slug in ("grok-4", "gpt-5.1"):
        agent = AgentFactory(cohort=cohort, family=Family.objects.get(slug=slug))
        worth(agent, {TEN * n: 10000 + 37 * n * len(slug) for n in range(6)})
    drawn = chart_data(get_page(client, f"/cohorts/{cohort.number}/"), "values")
    names = dict(Family.objects.values_list("display_name", "slug"))
    lines = {names[curve["name"]]: curve["values"] for curve in drawn["curves"]}
    series = curves(client, cohort=cohort.number)["series"]
    assert lines == {row["family"]: [float(value) for _, value in row["points"]] for row in series if row["points"]}
    assert lines["grok-4"][-1] == 10000 + 37 * 5 * 6


def test_curves_cost_the_same_queries_however_much_was_played(client: Client) -> None:
    play_week()
    play_week()  # whose snapshots the first week's agents have none beside: one query more fills the gaps
    before = statements(curves, client)
    play_week()
    play_week()
    assert statements(curves, client) == before <= 12


# --- leaderboards of past instants ------------------------------------------------------------------------------


def leaderboard(client: Client, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/leaderboard/", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def test_a_category_narrows_the_scores_and_leaves_the_money(client: Client) -> None:
    """1,250 on Politics (confidence 0.5, won: 0.25) and 875 on Sports (0.4, lost: 0.16), both at 0.40."""
    agent = AgentFactory()
    politics, sports = MarketFactory(category="Politics"), MarketFactory(category="Sports")
    bet(agent, politics, amount="1250.00")
    bet(agent, sports, amount="875.00")
    resolve(politics, "YES")
    resolve(sports, "NO")
    compute_scores(at=WEEK + 31 * DAY)
    MarketFactory(category="Crypto")
    (total,), (one,), (second,), (empty,) = (
        leaderboard(client, **query)
        for query in ({}, {"category": "Politics"}, {"category": "Sports"}, {"category": "Crypto"})
    )
    assert [row["brier"] for row in (total, one, second)] == pytest.approx([0.205, 0.25, 0.16])
    assert empty["brier"] is None
    assert [(row["resolved_bets"], row["win_rate"]) for row in (one, second, empty)] == [(1, 1.0), (1, 0.0), (0, None)]
    money = ("total_value", "pnl", "return_percent", "rank")
    for row in (one, second, empty):
        assert [row[key] for key in money] == ["11000.00", "1000.00", 10.0, 1]
