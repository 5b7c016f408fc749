"""The pictures of a ranking: which are drawn, that they are whole, and that they show what the report says."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from forecast_rank.ranking.plots import COLOURS, draw
from forecast_rank.ranking.report import rank_panel
from forecast_rank.ranking.settings import Settings

import forecast_rank as fr
from tests.forecast_rank.panels import panel, rows_of, synthetic

QUICK = Settings(bootstrap=100, stream=10, gammas=("0", "1"))
FORESTS = [
    "brier", "log", "spherical", "accuracy", "average_return_0", "average_return_1", "log_wealth_1",
    "alpha", "calibration", "adjusted_brier", "thurstone_mosteller", "irt", "weighted_brier",
]  # fmt: skip
ALL = [
    "reliability", "average_return_0", "average_return_1", *(f"scores_{name}" for name in FORESTS), "pairs", "ranks",
    "agreement", "ability",
]  # fmt: skip


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    made = synthetic(4, 80, seed=2)
    return drawable(made.panel, QUICK)


@pytest.fixture(scope="module")
def pictures(report: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The report's pictures, drawn once."""
    return draw(report, tmp_path_factory.mktemp("pictures"))


def drawable(forecasts: Any, settings: Settings) -> dict[str, Any]:
    return {"settings": {"level": settings.level, "gammas": list(settings.gammas)}, **rank_panel(forecasts, settings)}


def words(file: Path) -> str:
    """The text of a picture."""
    return " ".join(part for part in ElementTree.parse(file).getroot().itertext() if part.strip())


def test_every_picture_is_drawn_whole(report: dict[str, Any], pictures: list[Path]) -> None:
    assert [file.stem for file in pictures] == ALL
    for file in pictures:
        text = words(file)
        assert ElementTree.parse(file).getroot().tag.endswith("svg")
        if file.stem != "agreement":
            assert all(name in text for name in report["forecasters"]), file.stem


def test_pictures_may_be_pixels(report: dict[str, Any], tmp_path: Path) -> None:
    for file in draw(report, tmp_path, "png"):
        assert file.read_bytes().startswith(b"\x89PNG")


def test_the_same_report_gives_the_same_pictures(report: dict[str, Any], pictures: list[Path], tmp_path: Path) -> None:
    assert [file.read_bytes() for file in pictures] == [file.read_bytes() for file in draw(report, tmp_path)]


def test_figures_in_the_pictures_are_those_of_the_report(report: dict[str, Any], pictures: list[Path]) -> None:
    text = {file.stem: words(file) for file in pictures}
    reliability, returns = text["reliability"], text["average_return_1"]
    for name, entry in report["forecasters"].items():
        assert f"{name}  ECE {entry['ece']:.3f}" in reliability
        assert f"{name}  {entry['average_return']['1']:.3f}" in returns
    rho = report["agreement"]["spearman"]["log"]["brier"]
    assert f"{rho:.2f}".replace("-", "−") in text["agreement"]


def test_forest_plot_and_matrix_show_the_figures(report: dict[str, Any]) -> None:
    made = fr.Report(report)
    forest = made.plot_scores("brier")
    order = report["rankings"]["brier"]
    assert [label.get_text() for label in forest.get_yticklabels()] == order[::-1]
    drawn = [list(line.get_xdata()) for line in forest.lines if len(line.get_xdata()) == 2]
    assert [report["forecasters"][name]["brier_ci"] for name in order[::-1]] == drawn[: len(order)]
    matrix = made.plot_pairs().images[0].get_array()
    pair = report["pairs"][0]
    cell = order.index(pair["first"]), order.index(pair["second"])
    assert matrix[cell] == pytest.approx(pair["difference"])
    with pytest.raises(ValueError, match="no figures for scores_elo"):
        made.plot_scores("elo")


def test_only_what_has_figures_is_drawn(tmp_path: Path) -> None:
    made = synthetic(3, 30, seed=2, priced=0).panel
    files = draw(drawable(made, replace(QUICK, metrics=("log", "average_return"))), tmp_path)
    assert [file.stem for file in files] == ["scores_log", "scores_accuracy", "ranks", "agreement"]


def test_nothing_to_draw_draws_nothing(tmp_path: Path) -> None:
    report = drawable(panel(rows_of("ann", "q", [0.5, 0.5], 0)), replace(QUICK, metrics=("log",), bootstrap=0))
    assert draw(report, tmp_path) == []


def test_odd_names_and_crowds_are_drawn(tmp_path: Path) -> None:
    made = synthetic(14, 40, seed=2).panel
    names = ["$x^2_$", "a\nb", "<b>&", "a rather long name that no margin of any picture holds", *"cdefghijkl"]
    files = draw(drawable(replace(made, forecasters=names), QUICK), tmp_path)
    assert {name for name in ALL if not name.startswith("scores_")} <= {file.stem for file in files}
    assert "<b>&" in words(tmp_path / "ranks.svg")
    assert "the best 12 of 14" in words(tmp_path / "reliability.svg")
    assert f"the best {len(COLOURS)} of 14" in words(tmp_path / "average_return_0.svg")
