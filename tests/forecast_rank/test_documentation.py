"""The code of the library's pages is run as it stands there."""

import re
from pathlib import Path

import polars as pl
import pytest

import forecast_rank as fr

DOCS = Path(__file__).parents[2] / "packages" / "forecast_rank" / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python[^\n]*\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def test_parts_by_file_duckdb_and_dask_give_the_report_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    panel = fr.simulate("clustered", forecasters=3, events=12, seed=1).panel
    rows = pl.DataFrame({
        "forecaster": [panel.forecasters[i] for i in panel.forecaster],
        "question": [panel.questions.names[j] for j in panel.question],
        "event": [panel.questions.event_names[k] for k in panel.questions.event[panel.question]],
        "probability": panel.probability,
        "outcome": panel.outcome,
    })  # fmt: skip
    monkeypatch.chdir(tmp_path)
    rows.write_parquet("forecasts.parquet")
    for k in range(3):
        rows.filter(pl.col("question").rank("dense") % 3 == k).write_parquet(f"part-{k}.parquet")
    names: dict[str, fr.Partial] = {}
    for code in blocks("many-machines.md"):
        exec(code, names)
    known = fr.rank(rows, metrics="brier,log")
    for part in (names["part"], names["with_duckdb"], names["with_dask"]):
        report = part.report()
        assert report.to_dict()["rankings"] == known.to_dict()["rankings"]
        assert [pair["p"] for pair in report.to_dict()["pairs"]] == pytest.approx(
            [pair["p"] for pair in known.to_dict()["pairs"]]
        )
    assert capsys.readouterr().out.count("| 1 | f0 |") == 3


def test_examples_of_numbers_run(capsys: pytest.CaptureFixture) -> None:
    names: dict[str, object] = {}
    for code in blocks("numbers.md"):
        exec(code, names)
    assert "crps, lower is better" in capsys.readouterr().out
