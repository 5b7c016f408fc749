"""The boards of external agents: who is ranked, by what, and that the models' boards know nothing of them."""

import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.models import Agent, AgentVersion, Decision, Family
from agents.services.attempts import note_attempt
from arena_verifier.program import verify
from markets.models import QuestionBatch
from scoring.exports.verification.verifier import verify_archive
from scoring.models import AgentsBoard, Leaderboard
from scoring.services.scores import compute_scores
from tests.commands import run
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    FamilyFactory,
    MarketFactory,
    QuestionFactory,
    RegistrationFactory,
    SnapshotFactory,
    ask,
    bet,
    end_question,
    resolve,
)
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
DAY = timedelta(days=1)
END = WEEK + 60 * DAY
GPT = "gpt-5.1"
BOARD = "/api/v1/agents-board/"


def agent(slug: str, track: str = "closed") -> Family:
    family = FamilyFactory(slug=slug, display_name=slug.title(), external=True, active=False, track=track)
    AgentVersion.objects.create(family=family, number=1, began_at=WEEK - DAY)
    return family


def answer_questions() -> None:
    """51 questions, each resolved on the day after it was asked, and agents who answered different ones of them."""
    for slug in ("steady", "half", "sparse", "late", "few"):
        agent(slug)
    agent("free", track="open")
    for number in range(51):
        day = WEEK + number * DAY
        vectors = {GPT: [0.9, 0.1], "steady": [0.8, 0.2]}
        if number % 2 == 0:
            vectors["half"] = [0.7, 0.3]  # 26 questions
        if number % 2 == 0 and number != 2:
            vectors["sparse"] = [0.99, 0.01]  # 25
        if number >= 26:
            vectors["late"] = [0.6, 0.4]  # 25
        if number >= 27:
            vectors["few"] = [1.0, 0.0]  # 24
        if number == 50:
            vectors["free"] = [0.5, 0.5]
        question = QuestionFactory()
        ask(question, vectors, day=day)
        end_question(question, "YES", at=day + DAY)
    fail("half")
    compute_scores(at=END)


answers = shared_rows(answer_questions)


def board(client: Client, query: str = "") -> dict[str, dict[str, Any]]:
    return {row["forecaster"]: row for row in client.get(f"{BOARD}?page_size=100&{query}").json()["results"]}


def test_agents_are_ranked_from_25_questions_and_half_of_those_asked(answers: None, client: Client) -> None:
    rows = board(client)
    columns = ("rank", "answered", "asked", "coverage", "failed", "missed", "refused", "late")
    assert {slug: tuple(rows[slug][name] for name in columns) for slug in rows if rows[slug]["external"]} == {
        "steady": (1, 51, 51, 1.0, 0, 0, 0, 0),
        "half": (2, 26, 51, 26 / 51, 0, 0, 0, 1),
        "late": (3, 25, 25, 1.0, 0, 0, 0, 0),
        "few": (None, 24, 24, 1.0, 0, 0, 0, 0),
        "sparse": (None, 25, 51, 25 / 51, 0, 0, 0, 0),
    }
    scores = {GPT: 0.01, "steady": 0.04, "half": 0.09, "late": 0.16, "uniform": 0.25}
    assert {slug: rows[slug]["score"] for slug in scores} == pytest.approx(scores)
    assert [(slug, rows[slug]["rank"]) for slug in (GPT, "market", "uniform")] == [
        (GPT, None), ("market", None), ("uniform", None),
    ]  # fmt: skip
    assert list(rows)[:2] == [GPT, "steady"]
    assert list(rows)[-2:] == ["few", "sparse"]
    assert "ensemble" not in rows


def test_a_board_holds_one_track_and_the_questions_of_its_agents(answers: None, client: Client) -> None:
    rows = board(client, "track=open")
    assert [slug for slug, row in rows.items() if row["external"]] == ["free"]
    assert {slug: row["answered"] for slug, row in rows.items()} == {GPT: 1, "free": 1, "market": 1, "uniform": 1}
    assert rows["free"]["rank"] is None


@pytest.mark.parametrize(
    ("query", "ranks", "answered"),
    [
        ("as_of=2026-04-05", {"steady": 1, "half": None, "late": None}, 28),
    ],
)
def test_boards_of_the_past(
    answers: None, client: Client, query: str, ranks: dict[str, int | None], answered: int
) -> None:
    compute_scores(at=WEEK + 28 * DAY)
    rows = board(client, query)
    assert {slug: rows[slug]["rank"] for slug in ranks} == ranks
    assert rows["steady"]["answered"] == answered


def test_unknown_choices_are_refused(client: Client) -> None:
    for query in ("track=free", "protocol=both", "arm=blind"):
        assert client.get(f"{BOARD}?{query}").status_code == 400
    for query in ("track=free", "protocol=both", "as_of=never"):
        assert client.get(f"/agents/?{query}").status_code == 404


@pytest.fixture
def cohort() -> None:
    """A model, an agent with four decisions, and one that missed one of its four."""
    new_cohort = CohortFactory()
    model = AgentFactory(cohort=new_cohort)
    first = AgentFactory(cohort=new_cohort, family=agent("first"))
    second = AgentFactory(cohort=new_cohort, family=agent("second"))
    market = MarketFactory()
    bet(model, market, "NO", "500.00")
    bet(first, market, "YES", "1000.00")
    bet(second, market, "YES", "2500.00")
    for week in (2, 3, 4):
        DecisionFactory(agent=first, week=week)
    for week in (2, 3):
        DecisionFactory(agent=second, week=week)
    DecisionFactory(agent=second, week=4, status=Decision.Status.MISSED, decided_at=None, action=None, refusals=2)
    resolve(market, "YES")
    fail("second", week=4)
    compute_scores(at=END)


def fail(slug: str, **task: Any) -> None:
    """Two attempts at a task: an answer too late, and one refused."""
    registration = RegistrationFactory(family=Family.objects.get(slug=slug))
    if task:
        decision = Decision.objects.get(agent__family__slug=slug, **task)
        place: dict[str, Any] = {"agent": decision.agent, "universe": decision.universe}
    else:
        batch = QuestionBatch.objects.filter(arm="priced", elicitations__family__slug=slug).order_by("pk")[0]
        place = {"batch": batch}
    for kind in ("late", "refused"):
        note_attempt(place, kind, registration=registration, key=kind, reason="", at=WEEK + DAY)


def test_traders_are_ranked_from_four_decisions(cohort: None, client: Client) -> None:
    rows = board(client, "protocol=trading")
    columns = (
        "rank",
        "answered",
        "asked",
        "coverage",
        "missed",
        "refused",
        "late",
        "cohorts",
        "resolved_bets",
    )
    model = next(slug for slug, row in rows.items() if not row["external"])
    assert {slug: tuple(row[name] for name in columns) for slug, row in rows.items()} == {
        "first": (1, 4, 4, 1.0, 0, 0, 0, 1, 1),
        "second": (None, 3, 4, 0.75, 1, 2, 1, 1, 1),
        model: (None, None, None, None, None, None, None, 1, 1),
    }
    assert rows["second"]["score"] > rows["first"]["score"] > 0
    assert rows[model]["score"] == -5.0


def models_boards() -> dict[str, Any]:
    """The stored leaderboards without the rows of external agents, and without the counts of all tasks."""
    compute_scores(at=END)
    boards = {}
    for row in Leaderboard.objects.all():
        report = {name: part for name, part in row.report.items() if name not in ("inputs", "scores", "fitted")}
        for part in ("returns", "weeks", "costs"):
            if part in report:
                report[part] = {slug: value for slug, value in report[part].items() if slug != "visitor"}
        if "risk" in report:
            report["risk"]["families"].pop("visitor", None)
            visitors = {str(pk) for pk in Agent.objects.filter(family__slug="visitor").values_list("pk", flat=True)}
            for part in {"after_costs", "accounts"} & report.keys():
                report[part] = {pk: row for pk, row in report[part].items() if pk not in visitors}
        boards[str(row)] = [entry for entry in row.entries if not entry["external"]], report
    return boards


def test_no_figure_of_the_models_boards_depends_on_an_agent(client: Client) -> None:
    questions = [QuestionFactory() for _ in range(6)]
    for number, question in enumerate(questions):
        ask(question, {GPT: [0.7, 0.3], "grok-4": [0.4, 0.6]})
        end_question(question, "YES" if number % 3 else "NO")
    cohort = CohortFactory()
    market = MarketFactory()
    bet(AgentFactory(cohort=cohort), market, "YES", "500.00")
    resolve(market, "YES")
    before = models_boards()
    visitor = agent("visitor")
    AgentFactory(cohort=cohort, family=visitor)
    for question in questions:
        ask(question, {"visitor": [0.95, 0.05]})
    assert models_boards() == before
    assert board(client)["visitor"]["answered"] == 6


def test_a_forged_board_is_named_and_rebuilt(answers: None) -> None:
    row = AgentsBoard.objects.get(track="closed", protocol="forecast")
    right, row.entries[0]["score"] = row.entries[0]["score"], 0.0
    row.save()
    assert run("rebuild_derived", END)["corrected"] == 1
    row.refresh_from_db()
    assert row.entries[0]["score"] == right


def test_both_verifiers_end_the_interval_of_a_return_at_a_total_loss(client: Client, tmp_path: Path) -> None:
    """-25 % and +37.5 % in two cohorts: one degree of freedom takes the interval far below -100 %."""
    wild = agent("wild")
    for side in ("NO", "YES"):
        player = AgentFactory(cohort=CohortFactory(), family=wild)
        SnapshotFactory(agent=player, taken_at=player.cohort.week_start + 5 * DAY, cash=Decimal(10_000))
        market = MarketFactory()
        bet(player, market, side, "2500.00")
        resolve(market, "YES")
    compute_scores(at=END)
    low, high = board(client, "protocol=trading")["wild"]["score_ci"]
    assert (low, high > 100) == (-100.0, True)
    folder = tmp_path / "archive"
    assert run("export_dataset", END, out=folder, format=["csv"]).code == 0
    violations, _, _ = verify(folder)
    assert violations["boards of agents"] == []
    assert [line for line in verify_archive(folder).violations if line.startswith("leaderboard_agents")] == []


def test_the_page_shows_the_board_and_each_agents_versions(answers: None, client: Client) -> None:
    AgentVersion.objects.create(
        family=Family.objects.get(slug="steady"), number=2, began_at=WEEK + 40 * DAY, note="Reads <b>polls</b>"
    )
    page = client.get("/agents/").content.decode()
    track = "of the closed track when shown the market’s prices"
    lead = f"external agents {track} apart; Steady stands first: alpha +0.320"
    assert f"{lead} on 51 resolved questions, 7 May 2026." in page
    assert '<a href="/agents/sparse/">' in page
    assert "None" not in page
    open_page = client.get("/agents/?track=open").content.decode()
    assert "/agents/free/" in open_page
    assert "/agents/steady/" not in open_page
    half = client.get("/agents/half/").content.decode()
    figures = r'<data value="0">0</data></td>\s*<td class="number"><data value="1">1</data></td>\s*</tr>'
    assert re.search(figures, page)
    assert re.search(figures, half)
    markup = client.get("/agents/steady/").content.decode()
    assert "Reads &lt;b&gt;polls&lt;/b&gt;" in markup
    versions = re.findall(r'>(\d+)</data></td>\s*<td class="number"><data value="[\d.]+">0.040</data></td>', markup)
    assert versions == ["11", "40"]
    assert client.get("/agents/gpt-5.2/").status_code == 404
    assert client.get("/agents/charts/scores.csv").content.decode().splitlines()[1].startswith("Steady,0.32")
    assert client.get("/og/agents.svg").status_code == 200


def test_entry_of_a_family_that_is_gone_keeps_its_place_under_its_name(answers: None, client: Client) -> None:
    stored = AgentsBoard.objects.get(track="closed", protocol="forecast")
    for entry in stored.entries:
        if entry["forecaster"] in ("steady", GPT):
            entry.update(forecaster=f"gone-{entry['forecaster']}", family=f"gone-{entry['forecaster']}")
    AgentsBoard.objects.filter(pk=stored.pk).update(entries=stored.entries)
    response = client.get("/agents/")
    assert response.status_code == 200
    assert '<th scope="row">Steady</th>' in response.content.decode()
    assert client.get("/agents/charts/scores.csv").content.decode().splitlines()[1].startswith("Steady,0.32")
    assert client.get("/agents/charts/scores.svg").status_code == 200
    assert client.get("/og/agents.svg").status_code == 200
    assert board(client)["gone-steady"]["rank"] == 1
    for sort in ("name", "-score", "alpha"):
        assert client.get(f"/agents/?sort={sort}").status_code == 200


def test_pages_of_agents_before_anything(client: Client) -> None:
    agent("new")
    for query, status in (("", 200), ("?as_of=2020-01-01", 404)):
        assert client.get(f"/agents/{query}").status_code == status
        assert client.get(f"{BOARD}{query}").status_code == status
    assert client.get("/agents/new/").status_code in (200, 302)
    assert client.get(BOARD).json()["results"] == []
    assert client.get("/agents/nobody/").status_code == 404
    assert client.get("/agents/nobody/charts/scores.svg").status_code == 404
