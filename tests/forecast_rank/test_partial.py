"""Partial results: their sum is the report of the whole, whatever the cut, and what can not be added is refused."""

from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import forecast_rank as fr

METRICS = "brier,log,spherical,average_return,alpha"
QUICK: dict[str, Any] = {"bootstrap": 100, "min_questions": 20}


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    """Three questions an event, answers missing, prices, a weight for each question, a forecaster with a ruin."""
    panel = fr.simulate("missing at random", forecasters=4, events=20, seed=2).panel
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
def test_sum_of_parts_is_the_report_of_the_whole(rows: pl.DataFrame, cut: str, tmp_path: Path) -> None:
    whole = fr.rank(rows, metrics=METRICS, **QUICK).to_dict()
    key = pl.struct("forecaster", "question") if cut == "both" else pl.col(cut)
    pieces = [rows.filter(key.rank("dense") % 3 == k) for k in range(3)]
    for k, piece in enumerate(pieces):
        fr.Partial(piece, metrics=METRICS).save(tmp_path / f"{k}.part")
    parts = [fr.Partial.load(tmp_path / f"{k}.part") for k in (2, 0, 1)]
    report = reduce(add, parts).report(**QUICK).to_dict()
    assert report["rankings"] == whole["rankings"]
    assert report["headline"] == whole["headline"] == "brier"
    for name, entry in report["forecasters"].items():
        expected = {key: whole["forecasters"][name][key] for key in entry}
        assert flat(entry) == pytest.approx(flat(expected), rel=1e-9, nan_ok=True), name
    sizes = ("rows", "forecasts", "forecasters", "questions", "events", "priced")
    assert {size: report["data"][size] for size in sizes} == {size: whole["data"][size] for size in sizes}


def flat(entry: dict[str, Any]) -> dict[str, Any]:
    """The figures of an entry without nesting, NaN for a missing one."""
    table = fr.Report({"forecasters": {"x": entry}, "references": {}}).to_polars()
    figures = table.drop("forecaster", "reference").row(0, named=True)
    return {key: float("nan") if value is None else value for key, value in figures.items()}


def test_what_can_not_be_added_is_refused(rows: pl.DataFrame, tmp_path: Path) -> None:
    with pytest.raises(fr.InvalidSetting, match="irt cannot be added up; brier, log, spherical"):
        fr.Partial(rows, metrics="brier,irt")
    with pytest.raises(fr.InvalidSetting, match="different settings"):
        fr.Partial(rows, metrics="brier") + fr.Partial(rows, metrics="log")
    (tmp_path / "text").write_text("no part")
    with pytest.raises(fr.UnreadableFile, match="is not a saved partial result"):
        fr.Partial.load(tmp_path / "text")


def test_report_of_parts_is_printed_as_any_other(rows: pl.DataFrame) -> None:
    text = fr.Partial(rows, metrics="brier").report(bootstrap=0).to_text()
    assert "from parts: without references, pairs" in text
    assert "Brier score, mean form" in text
