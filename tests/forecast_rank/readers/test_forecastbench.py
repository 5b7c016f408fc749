"""ForecastBench's files: who the forecaster is, and what is not resolved yet."""

import json
from pathlib import Path
from typing import Any

import pytest

import forecast_rank as fr
from tests.captured import CAPTURED

FINDINGS = CAPTURED / "findings"


def forecast_file(path: Path, organization: str | None, model: str, *probabilities: float) -> str:
    forecasts: list[dict[str, Any]] = []
    for number, probability in enumerate(probabilities):
        forecasts.append({"id": f"q{number}", "source": "polymarket", "forecast": probability})
    path.write_text(json.dumps({"organization": organization, "model": model, "forecasts": forecasts}))
    return str(path)


def resolution_file(path: Path, *outcomes: float | None) -> str:
    resolutions: list[dict[str, Any]] = []
    for number, outcome in enumerate(outcomes):
        if outcome is not None:
            resolutions.append({"id": f"q{number}", "source": "polymarket", "resolved_to": outcome, "resolved": True})
    path.write_text(json.dumps({"resolutions": resolutions}))
    return str(path)


def rank(*files: str) -> dict[str, Any]:
    return fr.rank(list(files), format="forecastbench", metrics="brier", bootstrap=0).to_dict()


def test_model_of_two_organisations_is_two_forecasters(tmp_path: Path) -> None:
    report = rank(
        forecast_file(tmp_path / "a.json", "Alpha", "Model-5", 0.1, 0.1),
        forecast_file(tmp_path / "b.json", "Beta", "Model-5", 0.9, 0.9),
        resolution_file(tmp_path / "r.json", 1, 0),
    )
    assert {name: entry["n"] for name, entry in report["forecasters"].items()} == {
        "Alpha · Model-5": 2,
        "Beta · Model-5": 2,
    }
    assert report["rejected"] == []
    assert not any("Warning" in note and "punctuation" in note for note in report["notes"])


def test_names_that_differ_by_punctuation_alone_are_two_with_a_warning(tmp_path: Path) -> None:
    report = rank(
        forecast_file(tmp_path / "a.json", "Alpha", "Model-5", 0.1, 0.1),
        forecast_file(tmp_path / "b.json", "Alpha", "Model 5", 0.9, 0.9),
        resolution_file(tmp_path / "r.json", 1, 0),
    )
    assert len(report["forecasters"]) == 2
    (warning,) = [note for note in report["notes"] if "punctuation" in note]
    assert "'Alpha · Model-5'" in warning
    assert "'Alpha · Model 5'" in warning


def test_question_without_a_resolution_is_left_out_and_counted_apart(tmp_path: Path) -> None:
    report = rank(
        forecast_file(tmp_path / "a.json", "H", "naive", 0.6, 0.6, 0.6, 0.6),
        resolution_file(tmp_path / "r.json", 1, None, None, None),
    )
    naive = report["forecasters"]["H · naive"]
    assert (naive["n"], naive["brier"]) == (1, pytest.approx(0.16))
    assert (report["data"]["unresolved"], report["data"]["rejected"]) == (3, 0)


@pytest.mark.captured
def test_captured_inputs() -> None:
    folder = FINDINGS / "one-forecaster-by-model-alone"
    brier = {name: entry["brier"] for name, entry in rank(*map(str, folder.glob("*.json")))["forecasters"].items()}
    assert brier == pytest.approx({"Alpha · Model-5": 0.21, "Beta · Model-5": 0.61})
    report = rank(*map(str, (FINDINGS / "unresolved-horizons-are-rejected").glob("*.json")))
    assert report["forecasters"]["H · naive"]["brier"] == pytest.approx(0.16)


class TestLongForm:
    HEAD = "forecaster,question,probability,outcome\n"

    def read(self, tmp_path: Path, text: str) -> fr.LoadedForecasts:
        (tmp_path / "a.csv").write_text(self.HEAD + text)
        return fr.read(tmp_path / "a.csv")

    def test_question_whose_outcome_nobody_states_is_left_out(self, tmp_path: Path) -> None:
        loaded = self.read(tmp_path, "ann,q1,0.5,1\nann,q2,0.5,\nbob,q2,0.4,\nann,q3,7,\n")
        assert (loaded.unresolved, [line.row for line in loaded.rejected], len(loaded.panel)) == (3, [], 1)
        assert "3 of questions without a resolution" in loaded.explanation()

    def test_outcome_that_one_row_states_or_botches_leaves_the_others_at_fault(self, tmp_path: Path) -> None:
        loaded = self.read(tmp_path, "ann,q1,0.5,1\nbob,q1,0.5,\nann,q2,0.5,maybe\nbob,q2,0.5,\n")
        assert (loaded.unresolved, [line.row for line in loaded.rejected]) == (0, [3, 4, 5])

    def test_file_of_open_questions_alone_says_so(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_text(self.HEAD + "ann,q1,0.5,\nbob,q1,0.5,\n")
        with pytest.raises(fr.TooFewForecasts, match="2 rows are of questions without an outcome in any row"):
            fr.rank(tmp_path / "a.csv")

    def test_rows_of_open_questions_do_not_make_a_file_unrankable_or_rankable(self, tmp_path: Path) -> None:
        rows = "ann,q1,0.5,1\n" + "ann,q2,x,1\nann,q3,x,1\n" + "".join(f"ann,o{k},0.5,\n" for k in range(20))
        (tmp_path / "a.csv").write_text(self.HEAD + rows)
        with pytest.raises(fr.TooFewForecasts, match="2 of 3 rows are rejected"):
            fr.rank(tmp_path / "a.csv", metrics="brier")
