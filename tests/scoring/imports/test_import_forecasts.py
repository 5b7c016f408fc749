"""`manage.py import_forecasts`: each contents once, every refusal on record, a leaderboard that is `rank`'s."""

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from forecast_rank.readers.formats import FORMATS
from scoring.models import ForecastImport, ImportCollection, ImportedForecast, ImportLeaderboard, Leaderboard
from scoring.services import imports
from scoring.services.leaderboard_drift import import_leaderboard_drift
from tests.markup import element, get_page, links, visible_text
from tests.scoring.imports.commands import collection, imported, leaderboard, printed, rejections, written

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 8, tzinfo=UTC)
ROWS = """forecaster,question,option,probability,outcome,odds,made_at,closed_at
ann,q1,a,0.7,1,0.6,2026-01-01,2026-02-01
ann,q1,b,0.3,0,0.45,2026-01-01,2026-02-01
bob,q1,a,0.4,1,0.6,2026-01-01,2026-02-01
bob,q1,b,0.6,0,0.45,2026-01-01,2026-02-01
ann,q2,YES,0.2,0,0.3,,
bob,q2,YES,0.1,0,0.3,,
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "forecasts.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes another file of the long form."""

    def write(*rows: str, name: str = "others.csv", header: str = ROWS.splitlines()[0]) -> Path:
        path = tmp_path / name
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write


def test_file_without_a_row_is_a_failure_as_in_rank(write_file: Callable[..., Path], capsys: Any) -> None:
    with pytest.raises(SystemExit) as end:
        call_command("import_forecasts", write_file(), "--format", "long", "--at", "2026-03-08T00:00:00Z")
    assert end.value.code == 1
    assert "others.csv: there is no row to import" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        call_command("rank", write_file())
    assert end.value.code == 1


def test_rows_are_stored_as_they_were_said(file: Path) -> None:
    summary = imported("long", file)
    assert (summary["rows"], summary["rejected"], summary["added"]) == (6, 0, 6)
    assert (summary["forecasters"], summary["questions"], summary["open_questions"]) == (2, 2, 0)
    row = ImportedForecast.objects.get(forecaster="bob", option="b")
    assert (row.row, row.probability, row.outcome, row.odds, row.no_odds) == (5, 0.6, 0.0, 0.45, None)
    assert (row.made_at, row.closed_at) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    assert (row.weight, row.exclusive, row.event) == (1.0, True, "")


def test_provenance_names_the_file_and_its_contents(file: Path) -> None:
    imported("long", file)
    record = ForecastImport.objects.get()
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert record.files == [{"name": "forecasts.csv", "sha256": digest, "bytes": len(ROWS)}]
    assert (record.sha256, record.format, record.rows, record.rejected, record.forecasts) == (digest, "long", 6, 0, 6)
    assert record.imported_at == datetime(2026, 3, 8, 12, tzinfo=UTC)


def test_the_leaderboard_is_what_rank_says_of_the_file(file: Path, tmp_path: Path) -> None:
    imported("long", file)
    call_command("rank", str(file), "--out", str(tmp_path / "report.json"), stdout=StringIO())
    report = json.loads((tmp_path / "report.json").read_text())
    stored = leaderboard()
    for part in ("forecasters", "references", "rankings", "pairs", "agreement", "curves"):
        assert stored[part] == report[part]
    assert set(stored["references"]) == {"market", "uniform", "ensemble"}
    assert list(import_leaderboard_drift(at=NOW)) == []
    assert not Leaderboard.objects.exists(), "the arena's own leaderboards know nothing of it"


def test_same_contents_again_change_nothing_and_say_so(file: Path, tmp_path: Path) -> None:
    imported("long", file, collection="mine")
    before = ImportLeaderboard.objects.get()
    copy = tmp_path / "copy.csv"
    copy.write_bytes(file.read_bytes())
    summary = imported("long", copy, collection="mine", at="2026-03-09T00:00:00Z")
    assert (summary["rows"], summary["rejected"], summary["added"], summary["unchanged"]) == (6, 0, 0, 1)
    assert "forecasts.csv: imported on 2026-03-08 12:00, nothing changed" in printed("long", copy, collection="mine")
    assert (ForecastImport.objects.count(), ImportedForecast.objects.count()) == (1, 6)
    after = ImportLeaderboard.objects.get()
    assert (after.computed_at, after.report) == (before.computed_at, before.report)


def test_second_file_of_a_collection_adds(file: Path, write_file: Callable[..., Path]) -> None:
    imported("long", file, collection="mine")
    summary = imported("long", write_file("cem,q2,YES,0.3,0,0.3,,"), collection="mine")
    assert (summary["added"], summary["forecasters"], collection().slug) == (1, 3, "mine")
    assert leaderboard()["rankings"]["brier"] == ["ann", "cem", "bob"]
    assert leaderboard()["forecasters"]["cem"]["brier"] == pytest.approx(0.09)


def test_forecast_that_another_file_has_stated_is_refused_with_its_source(
    file: Path, write_file: Callable[..., Path]
) -> None:
    imported("long", file, collection="mine")
    again = write_file("ann,q2,YES,0.9,0,0.3,,", "ann,q1,a,0.9,1,0.6,2026-01-05,", "ann,q1,b,0.1,0,0.45,2026-01-05,")
    summary = imported("long", again, collection="mine")
    assert (summary["rows"], summary["rejected"], summary["added"]) == (3, 1, 2)
    assert rejections() == [(2, "forecasts.csv has this forecast already")]
    assert ImportedForecast.objects.get(question="q2", forecaster="ann").probability == 0.2
    assert leaderboard()["data"]["superseded"] == 2, "a later forecast stands for the earlier one"


def test_collections_do_not_mix(file: Path, write_file: Callable[..., Path]) -> None:
    imported("long", file)
    imported("long", write_file("ann,q2,YES,0.9,0,0.3,,"))
    assert set(ImportCollection.objects.values_list("slug", flat=True)) == {"long-forecasts", "long-others"}
    assert set(leaderboard("long-others")["forecasters"]) == {"ann"}


def test_bad_rows_are_named_by_line_and_the_rest_is_taken(write_file: Callable[..., Path]) -> None:
    mixed = write_file(
        "ann,q1,a,0.7,1,,,",
        "ann,q1,b,0.4,0,,,",
        "bob,q2,YES,1.5,0,,,",
        "cem,q2,YES,maybe,0,,,",
        "dea,q2,YES,0.5,0,,,",
        f"{'e' * 201},q2,YES,0.5,0,,,",
    )
    summary = imported("long", mixed)
    assert (summary["rows"], summary["rejected"], summary["added"]) == (6, 5, 1)
    assert rejections() == [
        (2, "probability 0.7 belongs to exclusive options that sum to 1.1, not 1"),
        (3, "probability 0.4 belongs to exclusive options that sum to 1.1, not 1"),
        (4, "probability 1.5 is outside [0, 1]"),
        (5, "probability 'maybe' is not a number"),
        (7, "forecaster is longer than 200 characters"),
    ]
    assert "probability 1.5 is outside [0, 1]" in printed("long", mixed)


def test_question_without_an_outcome_is_open_and_not_scored(write_file: Callable[..., Path]) -> None:
    file = write_file("ann,q1,YES,0.7,,,,", "ann,q2,YES,0.2,0,,,", "ann,q3,a,0.5,1,,,", "ann,q3,b,0.5,,,,")
    summary = imported("long", file)
    assert (summary["added"], summary["open_questions"]) == (2, 1)
    assert [why for _, why in rejections()] == ["the outcome of some options is missing"] * 2
    assert leaderboard()["forecasters"]["ann"]["n"] == 1


def test_fractional_outcome_needs_its_flag(write_file: Callable[..., Path]) -> None:
    file = write_file("ann,q1,YES,0.7,0.25,,,")
    with pytest.raises(SystemExit) as end:
        imported("long", file)
    assert end.value.code == 1
    assert "fractions need --fractional-outcomes" in rejections()[0][1]
    assert imported("long", file, collection="prices", fractional_outcomes=True)["rejected"] == 0
    assert leaderboard("prices")["forecasters"]["ann"]["brier"] == pytest.approx(0.45**2)


def test_files_that_contradict_each_other_are_settled_on_the_leaderboard(
    file: Path, write_file: Callable[..., Path]
) -> None:
    imported("long", file, collection="mine")
    imported("long", write_file("cem,q2,YES,0.3,1,0.3,,"), collection="mine")
    assert leaderboard()["data"]["rejected"] == 1
    assert "cem" not in leaderboard()["forecasters"]


def import_file(file: Path, progress: Callable[[int, int], None]) -> None:
    collection = imports.get_or_create_collection(name="mine", at=NOW)
    (source,) = FORMATS["long"]([file])
    imports.import_source(collection=collection, format="long", source=source, at=NOW, progress=progress)


def test_import_that_broke_off_is_completed(
    file: Path, monkeypatch: pytest.MonkeyPatch, write_file: Callable[..., Path]
) -> None:
    monkeypatch.setattr(imports, "BATCH", 2)
    written_batches = []

    def power_fails(*arguments: Any, **options: Any) -> None:
        written_batches.append(arguments)
        if len(written_batches) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_file(file, power_fails)
    assert 0 < ImportedForecast.objects.count() < 6
    assert not ForecastImport.objects.get().completed
    summary = imported("long", file, collection="mine")
    assert (summary["added"], summary["rejected"], summary["unchanged"]) == (6, 0, 0)
    assert ImportedForecast.objects.count() == 6


def test_batches_part_no_forecast(monkeypatch: pytest.MonkeyPatch, write_file: Callable[..., Path]) -> None:
    monkeypatch.setattr(imports, "BATCH", 3)
    rows = [f"f{k},q{k % 3},{option},0.25,{int(option == 'a')},,," for k in range(5) for option in "abcd"]
    file = write_file(*reversed(rows))
    sizes: list[int] = []
    import_file(file, lambda finished_count, of: sizes.append(finished_count))
    assert sizes == [0, 4, 8, 12, 16, 20]
    first = ImportedForecast.objects.filter(forecaster="f1").order_by("pk")
    assert [row.option for row in first] == ["d", "c", "b", "a"], "options keep the order of the file"


@pytest.mark.parametrize(
    ("name", "contents", "complaint"),
    [
        ("missing.csv", None, "missing.csv: no such file"),
        ("empty.csv", "", "is empty"),
        ("wrong.csv", "a,b\n1,2\n", "has no column 'forecaster'"),
    ],
)
def test_file_that_can_not_be_used_is_bad_usage_and_leaves_nothing(
    tmp_path: Path, name: str, contents: str | None, complaint: str
) -> None:
    path = tmp_path / name
    if contents is not None:
        path.write_text(contents)
    with pytest.raises(CommandError, match=complaint) as refusal:
        imported("long", path)
    assert refusal.value.returncode == 2
    assert not ImportCollection.objects.exists()


def test_database_holds_what_the_checks_promise(file: Path) -> None:
    imported("long", file)
    row = ImportedForecast.objects.get(forecaster="bob", question="q2")

    def refused(**changed: Any) -> bool:
        try:
            with transaction.atomic():
                ImportedForecast.objects.filter(pk=row.pk).update(**changed)
        except IntegrityError:
            return True
        return False

    for changed in ({"probability": 1.1}, {"outcome": -0.1}, {"odds": 1.0}, {"weight": 0.0}, {"forecaster": "ann"}):
        assert refused(**changed), changed
    assert not refused(probability=0.5)


def test_hostile_names_are_data(tmp_path: Path) -> None:
    record = {"forecaster": "<b>x\n</b>", "question": "q\u0000", "option": "YES", "probability": 0.5, "outcome": 1}
    file = written(tmp_path / "x.jsonl", record, {**record, "question": "q"})
    summary = imported("long", file)
    assert (summary["added"], rejections()) == (1, [(1, "question holds a NUL")])


# --- People on boards of imported forecasts, and their gap to the best model

HEADER = "forecaster,question,option,probability,outcome,event\n"


def rows(name: str, *chances: float) -> str:
    return "".join(f"{name},q{number},YES,{chance},1,e{number}\n" for number, chance in enumerate(chances))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    human_file, models = tmp_path / "people.csv", tmp_path / "models.csv"
    human_file.write_text(HEADER + rows("median of people", 0.9, 0.8, 0.95, 0.85, 0.9, 0.92))
    models.write_text(
        HEADER + rows("alpha", 0.6, 0.5, 0.7, 0.6, 0.55, 0.6) + rows("beta", 0.5, 0.3, 0.4, 0.5, 0.4, 0.5)
    )
    return human_file, models


def test_gap_is_the_paired_difference_of_the_best_model_and_people(client: Client, files: tuple[Path, Path]) -> None:
    human_file, models = files
    imported("long", human_file, collection="Shared", people=[])
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
    sentence = visible_text(element(page, "figure.intervals"))
    assert "median of people forecasts better than alpha" in sentence
    assert "Whether the model was shown the market’s prices is not known." in sentence
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
