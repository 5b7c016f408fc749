"""The pictures of a ranking: which are drawn, that they are whole, and that they show what the report says."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import forecast_rank as fr
from forecast_rank.ranking.names import distinct_names
from forecast_rank.ranking.plot_style import COLOURS
from forecast_rank.ranking.report import rank_panel
from forecast_rank.ranking.settings import Settings
from tests.forecast_rank.panels import answers, panel, rows_of, synthetic
from tests.lazy_modules import pl, plots, plt
from tests.selection import chosen

pytestmark = pytest.mark.slow

QUICK = Settings(bootstrap=100, stream=10, gammas=("0", "1"))
DRAWN = replace(QUICK, metrics=("brier", "average_return", "calibration", "irt"), gammas=("1",))
"""Settings under which a picture of each kind is drawn."""
ALL_FORESTS = (
    "brier", "log", "spherical", "accuracy", "average_return_0", "average_return_1", "log_wealth_1",
    "alpha", "calibration", "adjusted_brier", "thurstone_mosteller", "irt", "weighted_brier",
)  # fmt: skip
DRAWN_PICTURES = [
    "reliability", "average_return_1",
    "scores_brier", "scores_accuracy", "scores_average_return_1", "scores_log_wealth_1", "scores_calibration",
    "scores_irt", "pairs", "ranks", "agreement", "ability",
]  # fmt: skip


def pictures_with(forests: Iterable[str]) -> list[str]:
    """The names of the pictures of a report with these forest plots, in their order."""
    forest_pictures = [f"scores_{name}" for name in forests]
    curves = ["reliability", "average_return_0", "average_return_1"]
    return [*curves, *forest_pictures, "pairs", "ranks", "agreement", "ability"]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    world = synthetic(4, 80, seed=2)
    return drawable(world.panel, DRAWN)


def drawable(forecasts: Any, settings: Settings) -> dict[str, Any]:
    return {"settings": {"level": settings.level, "gammas": list(settings.gammas)}, **rank_panel(forecasts, settings)}


def two_forecasters() -> dict[str, Any]:
    """A report with few pictures."""
    forecasts = panel(answers(ann=[0.7, 0.6], bob=[0.4, 0.9]))
    return drawable(forecasts, replace(QUICK, metrics=("log",), bootstrap=0))


def words(file: Path) -> str:
    """The text of a picture."""
    return " ".join(part for part in ElementTree.parse(file).getroot().itertext() if part.strip())


@pytest.mark.thorough
def test_every_picture_is_drawn_whole(tmp_path: Path) -> None:
    report = drawable(synthetic(4, 80, seed=2).panel, QUICK)
    pictures = plots.draw(report, tmp_path)
    assert [file.stem for file in pictures] == pictures_with(ALL_FORESTS)
    assert_whole(pictures, report["forecasters"])


def assert_whole(pictures: Iterable[Path], names: Iterable[str]) -> None:
    for file in pictures:
        assert ElementTree.parse(file).getroot().tag.endswith("svg")
        if file.stem != "agreement":
            text = words(file)
            assert all(name in text for name in names), file.stem


def test_pictures_may_be_pixels(tmp_path: Path) -> None:
    files = plots.draw(two_forecasters(), tmp_path, "png")
    assert "scores_log.png" in [file.name for file in files]
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG")


def test_the_same_report_gives_the_same_pictures(tmp_path: Path) -> None:
    once, again = plots.draw(two_forecasters(), tmp_path / "once"), plots.draw(two_forecasters(), tmp_path / "again")
    assert len(once) > 2
    assert [file.read_bytes() for file in once] == [file.read_bytes() for file in again]


def test_pictures_are_drawn_whole_with_the_figures_of_the_report(report: dict[str, Any], tmp_path: Path) -> None:
    pictures = plots.draw(report, tmp_path)
    assert [file.stem for file in pictures] == DRAWN_PICTURES
    assert_whole(pictures, report["forecasters"])
    text = {file.stem: words(file) for file in pictures}
    reliability, returns = text["reliability"], text["average_return_1"]
    for name, entry in report["forecasters"].items():
        assert f"{name}  ECE {entry['ece']:.3f}" in reliability
        assert f"{name}  {entry['average_return']['1']:.3f}" in returns
    rho = report["agreement"]["spearman"]["irt"]["brier"]
    assert f"{rho:.2f}".replace("-", "−") in text["agreement"]


def test_forest_plot_and_matrix_show_the_figures(report: dict[str, Any]) -> None:
    report_object = fr.Report(report)
    forest = report_object.plot_scores("brier")
    order = report["rankings"]["brier"]
    assert [label.get_text() for label in forest.get_yticklabels()] == order[::-1]
    drawn = [list(line.get_xdata()) for line in forest.lines if len(line.get_xdata()) == 2]
    assert [report["forecasters"][name]["brier_ci"] for name in order[::-1]] == drawn[: len(order)]
    matrix = report_object.plot_pairs().images[0].get_array()
    pair = report["pairs"][0]
    cell = order.index(pair["first"]), order.index(pair["second"])
    assert matrix[cell] == pytest.approx(pair["difference"])
    with pytest.raises(ValueError, match="no figures for scores_elo"):
        report_object.plot_scores("elo")


def test_only_what_has_figures_is_drawn(tmp_path: Path) -> None:
    panel = synthetic(3, 30, seed=2, priced=0).panel
    files = plots.draw(drawable(panel, replace(QUICK, metrics=("log", "average_return"))), tmp_path)
    assert [file.stem for file in files] == ["scores_log", "scores_accuracy", "ranks", "agreement"]


def test_nothing_to_draw_draws_nothing(tmp_path: Path) -> None:
    report = drawable(panel(rows_of("ann", "q", [0.5, 0.5], 0)), replace(QUICK, metrics=("log",), bootstrap=0))
    assert plots.draw(report, tmp_path) == []


@pytest.mark.thorough
def test_odd_names_and_crowds_are_drawn(tmp_path: Path) -> None:
    panel = synthetic(14, 40, seed=2).panel
    names = ["$x^2_$", "a\nb", "<b>&", "a rather long name that no margin of any picture holds", *"cdefghijkl"]
    metrics = ("brier", "average_return", "calibration", "thurstone_mosteller", "irt")
    files = plots.draw(drawable(replace(panel, forecasters=names), replace(QUICK, metrics=metrics)), tmp_path)
    assert set(pictures_with([])) <= {file.stem for file in files}
    assert "<b>&" in words(tmp_path / "ranks.svg")
    assert "the best 12 of 14" in words(tmp_path / "reliability.svg")
    assert f"the best {len(COLOURS)} of 14" in words(tmp_path / "average_return_0.svg")


def pictures_of(content: dict[str, Any], name: str) -> Iterator[Any]:
    """The first and the last figure of one kind, as `plot_…` shows them."""
    suffixes = []
    for suffix, figure in plots.PICTURES[name](content):
        plt.close(figure)
        suffixes.append(suffix)
    for suffix in {*suffixes[:1], *suffixes[-1:]}:
        yield plots.axes_of(content, name, suffix)[0].figure


NAMES = ("human median of the crowd", "community average", "robot team", "old robot")


@pytest.fixture(scope="module")
def small() -> fr.Report:
    columns = {"question": [f"q{j}" for j in range(6)], "outcome": [1, 0, 1, 0, 1, 0]}
    forecasts = [
        [0.8, 0.2, 0.6, 0.1, 0.9, 0.3],
        [0.7, 0.3, 0.7, 0.2, 0.6, 0.2],
        [0.6, 0.3, 0.4, 0.4, 0.7, 0.5],
        [0.5, 0.4, 0.5, 0.3, 0.6, 0.6],
    ]
    return fr.rank(pl.DataFrame(columns | dict(zip(NAMES, forecasts, strict=True))), bootstrap=50)


class TestTitlesAndNames:
    @pytest.mark.parametrize("forecasters", chosen([2], [2, 4]))
    def test_titles_are_whole_and_end_within_the_picture(self, small: fr.Report, forecasters: int) -> None:
        content = small.to_dict()
        if forecasters == 2:
            frame = pl.DataFrame({"question": ["q"], "outcome": [1], NAMES[0]: [0.7], NAMES[1]: [0.4]})
            content = fr.rank(frame, bootstrap=0, metrics="brier,calibration,irt").to_dict()
        for name in ("reliability", "scores", "pairs", "ranks", "agreement", "ability"):
            for figure in pictures_of(content, name):
                figure.canvas.draw()
                titles = [axes._left_title for axes in figure.axes if axes.get_visible()]
                titles += [figure._suptitle] if figure._suptitle else []
                for title in titles:
                    box = title.get_window_extent()
                    assert "…" not in title.get_text()
                    assert 0 <= box.x0 <= box.x1 <= figure.bbox.width, (name, title.get_text())
                plt.close(figure)

    def test_ranks_say_what_their_bars_are(self, small: fr.Report) -> None:
        title = small.plot_ranks()[0].figure._suptitle.get_text().replace("\n", " ")
        assert title == "Ranks (dot) and 95% rank ranges (bar), which hold for all forecasters together"

    def test_scores_without_intervals_are_drawn(self, tmp_path: Path) -> None:
        frame = pl.DataFrame({"question": ["q"], "outcome": [1], "ann": [0.7], "bob": [0.4]})
        fr.rank(frame, metrics="brier", plots=tmp_path)
        assert "Brier score, without intervals, the best on top" in words(tmp_path / "scores_brier.svg")

    def test_abilities_without_intervals_do_not_promise_any(self, small: fr.Report) -> None:
        for bootstrap, title in ((0, "Ability of forecasters, without intervals"), (50, None)):
            generator = np.random.default_rng(2)
            columns = {"question": [f"q{j}" for j in range(40)], "outcome": [0, 1] * 20}
            frame = pl.DataFrame(columns | {name: generator.random(40) for name in NAMES})
            report = fr.rank(frame, metrics="irt", bootstrap=bootstrap)
            above = plots.axes_of(report.to_dict(), "ability")[0]
            assert above.get_title(loc="left") == (title or "Ability of forecasters, 95% intervals")
            plt.close("all")

    def test_long_names_stay_two(self, tmp_path: Path) -> None:
        long = [f"Claude-3-5-Sonnet-20240620 (superforecaster prompt with news {k})" for k in (1, 2)]
        frame = pl.DataFrame({"question": [f"q{j}" for j in range(6)], "outcome": [1, 0] * 3,
                              long[0]: [0.7, 0.2] * 3, long[1]: [0.6, 0.1, 0.5, 0.2, 0.4, 0.3]})  # fmt: skip
        report = fr.rank(frame, metrics="brier,calibration", bootstrap=50)
        for name in long:
            assert f"| {name} |" in report.to_markdown("brier")
            assert f"& {name} &" in report.to_latex("brier")
        labels = [label.get_text() for label in report.plot_scores("brier").get_yticklabels()]
        assert len(set(labels)) == 2
        rows = [line.split("  ")[1].strip() for line in report.to_text(200).splitlines() if "Claude" in line]
        assert len(set(rows[:2])) == 2
        plt.close("all")


@pytest.mark.parametrize("names", [["a" * 60 + "x" + "b" * 60, "a" * 60 + "y" + "b" * 60], ["a b", "a\tb"]])
def test_names_that_begin_and_end_alike_are_numbered(names: list[str]) -> None:
    short = distinct_names(names, 20)
    assert len(set(short.values())) == 2
    assert all(len(name) <= 20 for name in short.values())
