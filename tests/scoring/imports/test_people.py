"""People on boards of imported forecasts, and their gap to the best model."""

from pathlib import Path

import pytest
from django.core.management import CommandError
from django.test import Client

from scoring.models import ImportCollection
from tests.markup import element, get_page, links, visible_text
from tests.scoring.imports.commands import imported, leaderboard, printed

pytestmark = pytest.mark.django_db
HEADER = "forecaster,question,option,probability,outcome,event\n"


def rows(name: str, *chances: float) -> str:
    return "".join(f"{name},q{number},YES,{chance},1,e{number}\n" for number, chance in enumerate(chances))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    people, models = tmp_path / "people.csv", tmp_path / "models.csv"
    people.write_text(HEADER + rows("median of people", 0.9, 0.8, 0.95, 0.85, 0.9, 0.92))
    models.write_text(
        HEADER + rows("alpha", 0.6, 0.5, 0.7, 0.6, 0.55, 0.6) + rows("beta", 0.5, 0.3, 0.4, 0.5, 0.4, 0.5)
    )
    return people, models


def test_gap_is_the_paired_difference_of_the_best_model_and_people(client: Client, files: tuple[Path, Path]) -> None:
    people, models = files
    imported("long", people, collection="Shared", people=[])
    slug = imported("long", models, collection="Shared")["collection"]
    gap = leaderboard(slug)["people_gap"]
    assert (gap["model"], gap["people"], gap["n"], gap["events"]) == ("alpha", "median of people", 6, 6)
    model = sum((1 - p) ** 2 for p in (0.6, 0.5, 0.7, 0.6, 0.55, 0.6)) / 6
    human = sum((1 - p) ** 2 for p in (0.9, 0.8, 0.95, 0.85, 0.9, 0.92)) / 6
    assert gap["difference"] == pytest.approx(model - human)
    low, high = gap["interval"]
    assert 0 < low < gap["difference"] < high <= 1
    assert gap["p_adjusted"] < 0.05
    page = get_page(client, f"/imports/{slug}/")
    assert "median of people people" in visible_text(element(page, "table.board"))
    assert "median of people forecasts better than alpha" in visible_text(element(page, "figure.intervals"))
    assert any("charts/people.csv" in link for link in links(page))
    for extension in ("csv", "png", "svg"):
        assert client.get(f"/imports/{slug}/charts/people.{extension}").status_code == 200
    assert client.get(f"/api/v1/imports/{slug}/").json()["people"] == ["median of people"]


def test_file_that_was_imported_before_can_be_marked(files: tuple[Path, Path]) -> None:
    _, models = files
    imported("long", models, collection="Shared")
    assert leaderboard()["people"] == []
    assert imported("long", models, collection="Shared", people=["beta"])["unchanged"] == 1
    assert leaderboard()["people"] == ["beta"]
    assert leaderboard()["people_gap"]["people"] == "beta"


def test_unknown_person_is_refused(files: tuple[Path, Path]) -> None:
    with pytest.raises((CommandError, SystemExit)):
        printed("long", files[1], collection="Shared", people=["nobody"])
    assert ImportCollection.objects.get().people == []


def test_four_events_are_the_least_for_an_interval(tmp_path: Path, client: Client) -> None:
    file = tmp_path / "few.csv"
    file.write_text(HEADER + rows("alpha", 0.6, 0.5, 0.7) + rows("ann", 0.9, 0.8, 0.95))
    slug = imported("long", file, people=["ann"])["collection"]
    assert leaderboard(slug)["people_gap"]["interval"] is None
    assert "too few to tell" in visible_text(get_page(client, f"/imports/{slug}/"))


def test_skill_is_0_for_uniform_and_100_for_perfect(tmp_path: Path, client: Client) -> None:
    file = tmp_path / "skill.csv"
    file.write_text(HEADER + rows("perfect", 1, 1, 1) + rows("half", 0.5, 0.5, 0.5) + rows("wrong", 0, 0, 0))
    slug = imported("long", file)["collection"]
    skill = leaderboard(slug)["skill_percent"]
    assert [skill[name] for name in ("perfect", "half", "wrong")] == [100, 0, -300]
    text = visible_text(element(get_page(client, f"/imports/{slug}/"), "table.board"))
    assert "100.0" in text
    assert "−300.0" in text
