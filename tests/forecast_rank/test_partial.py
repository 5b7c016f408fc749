"""Partial results: their sum is the report of the whole, whatever the cut, and what can not be added is refused."""

import json
import re
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import pytest

import forecast_rank as fr
from forecast_rank.cli import main
from tests.forecast_rank.simulated_worlds import simulate
from tests.lazy_modules import pl

METRICS = "brier,log,spherical,average_return,alpha"
QUICK: dict[str, Any] = {"bootstrap": 100, "min_questions": 20}


@pytest.fixture(scope="module")
def rows() -> Any:
    """Three questions an event, answers missing, prices, a weight for each question, a forecaster with a ruin."""
    panel = simulate("missing at random", forecasters=4, events=20, seed=2).panel
    columns = {
        "forecaster": [panel.forecasters[i] for i in panel.forecaster],
        "question": [panel.questions.names[j] for j in panel.question],
        "event": [panel.questions.event_names[k] for k in panel.questions.event[panel.question]],
        "probability": panel.probability,
        "outcome": panel.outcome,
        "odds": panel.odds,
        "no_odds": panel.no_odds,
        "weight": [1.0 + j % 3 for j in panel.question],
    }
    return pl.DataFrame(columns).with_columns(
        pl.when(pl.col("forecaster") == "f3").then(1 - pl.col("outcome")).otherwise(pl.col("probability"))
    )


@pytest.mark.parametrize("cut", ["question", "forecaster", "both"])
def test_sum_of_parts_is_the_report_of_the_whole(rows: Any, cut: str, tmp_path: Path) -> None:
    full_report = fr.rank(rows, metrics=METRICS, **QUICK).to_dict()
    key = pl.struct("forecaster", "question") if cut == "both" else pl.col(cut)
    pieces = [rows.filter(key.rank("dense") % 3 == k) for k in range(3)]
    for k, piece in enumerate(pieces):
        fr.Partial(piece, metrics=METRICS).save(tmp_path / f"{k}.part")
    parts = [fr.Partial.load(tmp_path / f"{k}.part") for k in (2, 0, 1)]
    report = reduce(add, parts).report(**QUICK).to_dict()
    assert report["rankings"] == full_report["rankings"]
    assert report["headline"] == full_report["headline"] == "brier"
    for group in ("forecasters", "references"):
        assert list(report[group]) == list(full_report[group])
        for name, entry in report[group].items():
            expected = {key: full_report[group][name][key] for key in entry}
            assert flat(entry) == pytest.approx(flat(expected), rel=1e-9, nan_ok=True), name
    if cut == "question":
        for pair, full_pair in zip(report["pairs"], full_report["pairs"], strict=True):
            assert (pair.pop("first"), pair.pop("second")) == (full_pair["first"], full_pair["second"])
            assert pair == pytest.approx({key: full_pair[key] for key in pair}, rel=1e-6)
    else:
        assert report["pairs"] == []
        assert any("cut between questions" in note for note in report["notes"])
    sizes = ("rows", "forecasts", "forecasters", "questions", "events", "priced")
    assert {size: report["data"][size] for size in sizes} == {size: full_report["data"][size] for size in sizes}


def flat(entry: dict[str, Any]) -> dict[str, Any]:
    """The figures of an entry without nesting, NaN for a missing one."""
    table = fr.Report({"forecasters": {"x": entry}, "references": {}}).to_polars()
    figures = table.drop("forecaster", "reference").row(0, named=True)
    return {key: float("nan") if value is None else value for key, value in figures.items()}


def test_options_may_be_many_and_exclusive(tmp_path: Path) -> None:
    vectors = {"ann": [0.5, 0.3, 0.2], "bob": [0.2, 0.2, 0.6], "cy": [0.1, 0.8, 0.1]}
    frame = pl.DataFrame([
        {
            "forecaster": name, "question": f"q{j}", "option": "abc"[k], "probability": (vector * 2)[j % 3 + k],
            "outcome": int(k == j % 2), "odds": 0.3 + 0.05 * k,
        }
        for j in range(12) for name, vector in vectors.items() for k in range(3)
    ])  # fmt: skip
    full_report = fr.rank(frame, metrics=METRICS, bootstrap=0).to_dict()
    parts = [fr.Partial(frame[start : start + 45]) for start in (0, 45, 90)]
    report = reduce(add, parts).report(bootstrap=0).to_dict()
    for name, entry in report["references"].items():
        for key in ("n", "brier", "log", "spherical", "accuracy", "alpha"):
            assert entry[key] == pytest.approx(full_report["references"][name][key]), (name, key)


def test_parquet_file_is_read_in_batches(rows: Any, tmp_path: Path) -> None:
    rows.sort("question", "forecaster").write_parquet(tmp_path / "rows.parquet", row_group_size=64)
    part = fr.Partial.of_parquet(tmp_path / "rows.parquet", rows_at_once=50, metrics=METRICS)
    full_report, report = fr.rank(rows, metrics=METRICS, **QUICK).to_dict(), part.report(**QUICK).to_dict()
    assert report["rankings"] == full_report["rankings"]
    assert [pair["p"] for pair in report["pairs"]] == pytest.approx([pair["p"] for pair in full_report["pairs"]])


def test_many_events_are_dealt_into_groups(rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_report = fr.Partial(rows, metrics="brier").report(**QUICK).to_dict()
    monkeypatch.setattr("forecast_rank.partial.KEPT_EVENTS", 15)
    monkeypatch.setattr("forecast_rank.partial.MOST_EVENTS", 10)
    rows.sort("question").write_parquet(tmp_path / "rows.parquet")
    part = fr.Partial.of_parquet(tmp_path / "rows.parquet", metrics="brier", rows_at_once=50)
    grouped = part.report(**QUICK).to_dict()
    assert grouped["data"]["events"] == full_report["data"]["events"] == 20
    assert any("from 10 groups" in note for note in grouped["notes"])
    for group in ("forecasters", "references"):
        for name, entry in grouped[group].items():
            expected = full_report[group][name]
            assert entry["brier"] == pytest.approx(expected["brier"], rel=1e-12)
            assert entry["brier_se"] == pytest.approx(expected["brier_se"], rel=0.6)
            assert entry["brier_se"] != expected["brier_se"] or expected["brier_se"] == 0  # f3 is always wrong
    assert [pair["n"] for pair in grouped["pairs"]] == [pair["n"] for pair in full_report["pairs"]]


def test_large_parquet_file_is_ranked_in_batches(rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.parquet"
    rows.sort("question").write_parquet(path)
    full_report = fr.rank(path, metrics="brier,calibration", **QUICK).to_dict()
    monkeypatch.setattr("forecast_rank.batch_ranking.STREAMED_ROWS", len(rows) - 1)
    report = fr.rank(path, metrics="brier,calibration", out=tmp_path / "report.json", **QUICK).to_dict()
    assert report["rankings"] == {name: full_report["rankings"][name] for name in ("brier", "accuracy")}
    assert report["forecasters"]["f0"]["brier_ci"] == pytest.approx(full_report["forecasters"]["f0"]["brier_ci"])
    assert report["settings"]["file"] == str(path)
    assert any(note.startswith("without calibration: these need all forecasts at once") for note in report["notes"])
    assert json.loads((tmp_path / "report.json").read_text())["rankings"] == report["rankings"]
    with pytest.raises(fr.InvalidSetting, match="only brier, log, spherical"):
        fr.rank(path, metrics="calibration")
    rows.sort("question").with_columns(outcome=pl.lit(0.5)).write_parquet(path)
    with pytest.raises(fr.TooFewForecasts, match="rows are rejected"):
        fr.rank(path, metrics="brier")


def test_command_ranks_a_large_parquet_file_in_batches(
    rows: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.parquet"
    rows.sort("question").write_parquet(path)
    monkeypatch.setattr("forecast_rank.batch_ranking.STREAMED_ROWS", len(rows) - 1)
    outputs = ["--out", str(tmp_path / "report.json"), "--plots", str(tmp_path / "plots")]
    assert main([str(path), "--metrics", "brier,calibration", "--bootstrap", "50", *outputs]) == 0
    printed = capsys.readouterr().out
    assert "without calibration: these need all forecasts at once" in printed
    assert re.search(r"^ *1 +f\d", printed, re.MULTILINE)
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report["rankings"]) == {"brier", "accuracy"}
    assert list((tmp_path / "plots").glob("*.svg"))
    # Explained, a file is read at once.
    assert main([str(path), "--metrics", "brier,calibration", "--bootstrap", "50", "--explain"]) == 0
    printed = capsys.readouterr().out
    assert re.match(r"file +/", printed)
    assert "without calibration" not in printed


def test_parquet_rows_that_stand_apart_are_refused(rows: Any, tmp_path: Path) -> None:
    options = pl.concat([rows.with_columns(option=pl.lit(name)) for name in "ab"])
    options.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(fr.UnreadableFile, match="stand apart; sort the file by question"):
        fr.Partial.of_parquet(tmp_path / "rows.parquet", rows_at_once=50)
    rows[:0].write_parquet(tmp_path / "none.parquet")
    with pytest.raises(fr.UnreadableFile, match="has no rows"):
        fr.Partial.of_parquet(tmp_path / "none.parquet")


def test_many_forecasters_are_not_compared_in_pairs() -> None:
    names = [f"f{k:02}" for k in range(60)]
    frame = pl.DataFrame({"forecaster": names, "question": "q", "probability": 0.5, "outcome": 1})
    for part in (fr.Partial(frame), fr.Partial(frame[:30]) + fr.Partial(frame[30:].with_columns(question=pl.lit("r")))):
        assert any("more than 50 forecasters" in note for note in part.report(bootstrap=0).to_dict()["notes"])


def test_too_many_pairs_and_events_are_left_out_and_said(rows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = fr.Partial(rows, metrics="brier", pairs=False).report(bootstrap=0).to_dict()
    assert (alone["pairs"], alone["notes"][1]) == ([], "no pairs, as asked")
    monkeypatch.setattr("forecast_rank.partial.PAIR_ROWS", 50)
    third = pl.col("question").rank("dense") % 3
    total = reduce(add, [fr.Partial(rows.filter(third == k), metrics="brier") for k in range(3)])
    report = total.report(bootstrap=0).to_dict()
    assert report["pairs"] == []
    assert any("pairs times events are more than" in note for note in report["notes"])


def test_parts_that_contradict_each_other_are_refused(rows: Any) -> None:
    flipped = rows[1:2].with_columns(outcome=1 - pl.col("outcome"), forecaster=pl.lit("zoe"))
    with pytest.raises(fr.UnreadableFile, match=f"contradict each other .* of '{rows['question'][1]}'"):
        fr.Partial(rows[:1]) + fr.Partial(rows[1:2]) + fr.Partial(flipped)


def test_what_can_not_be_added_is_refused(rows: Any, tmp_path: Path) -> None:
    with pytest.raises(fr.InvalidSetting, match="irt cannot be added up; brier, log, spherical"):
        fr.Partial(rows, metrics="brier,irt")
    with pytest.raises(fr.InvalidSetting, match="different settings"):
        fr.Partial(rows, metrics="brier") + fr.Partial(rows, metrics="log")
    (tmp_path / "text").write_text("no part")
    with pytest.raises(fr.UnreadableFile, match="is not a saved partial result"):
        fr.Partial.load(tmp_path / "text")


def test_report_of_parts_is_printed_as_any_other(rows: Any) -> None:
    text = fr.Partial(rows, metrics="brier").report(bootstrap=0).to_text()
    assert "from parts: without curves" in text
    assert "Brier score, mean form" in text
