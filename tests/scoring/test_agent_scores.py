"""Scores of external agents: no agent moves another's, and who repeats the price is named."""

from pathlib import Path

import pytest
from django.test import Client

from arena_verifier.program import verify
from scoring.exports.verification.verifier import verify_archive
from scoring.selectors.forecast_panels import Selection, family_names, resolved_entries
from scoring.services.agents_boards import forecast_agents_board, refresh_agents_boards
from scoring.services.forecast_scores import score_forecasts
from tests.commands import run
from tests.factories import WEEK, QuestionFactory, ask, end_question
from tests.scoring.exports.forgery import Cells, read_cells, rewrite
from tests.scoring.test_agents_boards import DAY, GPT, agent, board
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
END = WEEK + 90 * DAY


def answer_questions() -> None:
    """60 questions, each of an event of its own; helpers answer badly what the worst agent alone answers besides.

    The first helper answers too few questions for a rank, the rare one less than half of those asked.
    """
    for slug in ("best", "middle", "worst", "helper-one", "helper-two", "helper-rare", "parrot"):
        agent(slug)
    for number in range(60):
        day = WEEK + number * DAY
        chance = 0.5 + 0.4 * ((number * 7) % 10) / 10
        vectors = {GPT: [chance, 1 - chance], "parrot": [0.4, 0.6]}
        if number < 45:
            vectors |= {"best": [0.8, 0.2], "middle": [0.7, 0.3]}
        if number < 27:
            vectors["helper-rare"] = [0.45, 0.55]
        if number >= 15:
            vectors["worst"] = [0.3, 0.7]
        if number >= 45:
            vectors |= {"helper-one": [0.01, 0.99], "helper-two": [0.0, 1.0]}
        question = QuestionFactory()
        ask(question, vectors, day=day)
        end_question(question, "YES" if number % 3 else "NO", at=day + DAY)
    score_forecasts(at=END)
    refresh_agents_boards(at=END)


helpers = shared_rows(answer_questions)


def test_no_agent_moves_another_and_who_repeats_the_price_is_named(helpers: None, client: Client) -> None:
    rows = board(client)
    selection = Selection("priced")
    first = {slug: 10**12 for slug in rows if rows[slug]["external"]}  # nothing was asked since
    agents = {slug: slug for slug in first if not slug.startswith("helper")}
    entries, models = resolved_entries(selection), family_names(selection)
    without = {e["forecaster"]: e for e in forecast_agents_board(entries, models, agents, first, {}, {}).entries}
    for slug in agents:
        for name in ("score", "score_ci", "alpha", "alpha_ci", "rank", "ranked_by"):
            assert rows[slug][name] == without[slug][name], (slug, name)
    assert {slug: row["repeats_price"] for slug, row in rows.items() if row["external"]} == {
        "parrot": True, "best": False, "middle": False, "worst": False, "helper-one": False, "helper-two": False,
        "helper-rare": False,
    }  # fmt: skip
    assert rows["parrot"]["price_distance"] == 0.0
    ranked = sorted((row["rank"], slug) for slug, row in rows.items() if row["rank"])
    assert [slug for _, slug in ranked] == sorted(agents, key=lambda slug: -rows[slug]["alpha"])
    assert {row["ranked_by"] for row in rows.values() if row["rank"]} == {"alpha"}
    assert "repeats the price" in client.get("/agents/").content.decode()


def test_interval_of_a_score_ends_at_the_bounds_of_a_brier_score(client: Client) -> None:
    """Of four events, of which one went wrong, it would begin at -0.35."""
    agent("sure")
    for number, chance in enumerate((0.99, 0.98, 0.97, 0.2)):
        day = WEEK + number * DAY
        question = QuestionFactory()
        ask(question, {GPT: [0.9, 0.1], "sure": [chance, 1 - chance]}, day=day)
        end_question(question, "YES", at=day + DAY)
    refresh_agents_boards(at=END)
    rows = board(client)
    low, high = rows["sure"]["score_ci"]
    assert (low, 0.1 < high <= 1) == (0.0, True)


def test_both_verifiers_recompute_the_board(helpers: None, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    assert run("export_dataset", END, out=folder, format=["csv"]).code == 0
    board_rows = [row for row in read_cells(folder, "leaderboard_agents") if row["protocol"] == "forecast"]
    ranked = {row["forecaster"] for row in board_rows if row["rank"]}
    assert ranked == {"best", "middle", "worst", "parrot"}
    assert verify(folder)[0]["boards of agents"] == []
    assert [line for line in verify_archive(folder).violations if line.startswith("leaderboard_agents")] == []
    rewrite(folder, "leaderboard_agents", forge_interval, record=True)
    lines = [line for line in verify_archive(folder).violations if line.startswith("leaderboard_agents")]
    assert lines[0].startswith("leaderboard_agents: closed forecast, best states score_ci [0.0, 1.0], computed is ")


def forge_interval(rows: Cells) -> None:
    for row in rows:
        if row["forecaster"] == "best" and row["protocol"] == "forecast":
            row["score_ci"] = "[0.0,1.0]"
