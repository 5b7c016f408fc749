"""The names of `forecast_rank`: `rank`, `read`, reports, and imports that load nothing before it is used."""

import ast
import doctest
import io
import json
import pkgutil
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import forecast_rank as fr
from tests.lazy_modules import pd, pl


class Tags(HTMLParser):
    """The number of each tag."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags[tag] += 1


COLUMNS: dict[str, list[Any]] = {
    "forecaster": ["ann", "bob", "ann", "bob", "cy"],
    "question": ["q1", "q1", "q2", "q2", "q1"],
    "probability": [0.8, 0.6, 0.3, 0.4, 1.5],
    "outcome": [1, 1, 0, 0, 1],
    "event": ["e1", "e1", "e2", "e2", None],
    "closed_at": [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 1, 2, 2, 1)],
    "comment": ["a", "b", "c", "d", "e"],
}
LONGER = {
    "forecaster": ["ann", "bob"] * 6,
    "question": [f"q{k}" for k in range(6) for _ in "ab"],
    "probability": [0.8, 0.6, 0.3, 0.4] * 3,
    "outcome": [1, 1, 0, 0] * 3,
}
"""Enough events for intervals."""
QUICK = {"metrics": "brier,average_return", "gamma": [0, 0.5], "bootstrap": 50}


@pytest.fixture(scope="module")
def report() -> fr.Report:
    return fr.rank(pl.DataFrame(COLUMNS), **QUICK)


@pytest.fixture(scope="module")
def longer() -> fr.Report:
    return fr.rank(pl.DataFrame(LONGER), **QUICK)


def table_lines(text: str) -> list[str]:
    """Lines without blank ones and without blanks at their end."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


class TestSources:
    def test_polars_pandas_and_files_give_the_same_report(self, report: fr.Report, tmp_path: Path) -> None:
        frame = pl.DataFrame(COLUMNS)
        frame.write_parquet(tmp_path / "f.parquet")
        frame.write_csv(tmp_path / "f.csv")
        sources = [pd.DataFrame(COLUMNS), frame.lazy(), tmp_path / "f.parquet", str(tmp_path / "f.csv"), fr.read(frame)]
        for source in sources:
            other_report = fr.rank(source, **QUICK).to_dict()
            for key in ("forecasters", "references", "rankings", "pairs", "data"):
                assert other_report[key] == report.to_dict()[key], type(source)

    def test_rejected_row_of_a_frame_is_numbered_from_1(self, report: fr.Report) -> None:
        assert report.to_dict()["rejected"] == [{"row": 5, "why": "probability 1.5 is outside [0, 1]"}]
        with pytest.raises(fr.InvalidRow, match=r"the frame, row 5: probability 1\.5"):
            fr.read(pl.DataFrame(COLUMNS), strict=True)

    def test_missing_column_and_wrong_type_are_named(self) -> None:
        with pytest.raises(fr.UnreadableFile, match="the frame has no column 'outcome'"):
            fr.read(pl.DataFrame(COLUMNS).drop("outcome"))
        with pytest.raises(TypeError, match="not list"):
            fr.read([1, 2])

    def test_arrow_tables_are_read_by_their_protocol(self) -> None:
        class Table:
            """A table of any library that speaks Arrow's PyCapsule protocol."""

            def __arrow_c_stream__(self, requested_schema: object = None) -> object:
                return pl.DataFrame(COLUMNS).__arrow_c_stream__(requested_schema)

        assert fr.read(Table()).panel.forecasters == ["ann", "bob"]

    def test_wide_frames_have_a_column_for_each_forecaster(self) -> None:
        columns = {"question": ["q1", "q2"], "outcome": [1, 0], "ann": [0.8, None], "bob": ["60%", "0,4"], "note": "x"}
        for frame in (pl.DataFrame(columns), pd.DataFrame(columns)):
            reading = fr.read(frame)
            assert sorted(reading.panel.probability.tolist()) == [0.4, 0.6, 0.8]
            assert (reading.panel.forecasters, reading.ignored) == (["ann", "bob"], ["note"])

    def test_missing_values_of_pandas_are_empty_cells(self) -> None:
        frame = pd.DataFrame(COLUMNS | {"odds": [0.5, None, 0.5, 0.5, None], "made_at": [pd.NaT] * 5})
        assert fr.read(frame).panel.priced.tolist() == [True, False, True, True]

    def test_headings_without_rows_cannot_be_ranked(self) -> None:
        with pytest.raises(fr.TooFewForecasts, match="the file has headings and no rows"):
            fr.rank(pl.DataFrame(COLUMNS)[:0], **QUICK)

    def test_settings_name_the_definition_of_the_calibration_error(self) -> None:
        settings = fr.rank(pl.DataFrame(LONGER), metrics="calibration", bins=5, bootstrap=0).to_dict()["settings"]
        assert settings["ece"].startswith("sum over 5 right-open bins of equal width")

    def test_frame_of_the_caller_stays_as_it_is(self) -> None:
        frame = pl.DataFrame(COLUMNS)
        fr.rank(frame, **QUICK)
        assert frame.equals(pl.DataFrame(COLUMNS))


class TestColumns:
    """Headings that are named for columns; the column that has such a name itself is ignored."""

    NAMED = "question=Date,forecaster=model,probability=Forecast (%)"
    TABLE: ClassVar[dict[str, list[Any]]] = {
        "Model": ["ann", "bob"] * 2, "date": ["2026-01-01", "2026-01-01", "2026-01-02", "2026-01-02"],
        "forecast (%)": [80, 60, 30, 40], "outcome": [1, 1, 0, 0], "question": ["the same text"] * 4,
    }  # fmt: skip

    @pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl", "frame", "pandas"])
    def test_named_headings_are_read(self, kind: str, tmp_path: Path) -> None:
        frame, file = pl.DataFrame(self.TABLE), tmp_path / f"f.{kind}"
        if kind == "csv":
            file.write_text(frame.write_csv(separator=";"))
        elif kind == "parquet":
            frame.write_parquet(file)
        elif kind == "jsonl":
            frame.write_ndjson(file)
        source: Any = {"frame": frame, "pandas": pd.DataFrame(self.TABLE)}.get(kind, file)
        reading = fr.read(source, columns=self.NAMED)
        assert reading.panel.questions.names == ["2026-01-01", "2026-01-02"]
        assert reading.panel.probability.tolist() == [0.8, 0.6, 0.3, 0.4]
        assert reading.ignored == ["question"]
        columns = {"question": "date", "forecaster": "model", "probability": "forecast (%)"}
        assert fr.rank(source, columns=columns, metrics="brier", bootstrap=0).ranked("brier")["ann"][0] == 1

    @pytest.mark.parametrize(
        ("columns", "error", "why"),
        [
            ("question=day", fr.UnreadableFile, "the frame has no column 'day' for question"),
            ("query=date", fr.InvalidSetting, "columns: unknown query"),
            ("date", fr.InvalidSetting, "columns: 'date' is not of the form COLUMN=HEADING"),
            ("question=date,event=date", fr.InvalidSetting, "columns: 'date' is named for two columns"),
            ("question=date,question=model", fr.InvalidSetting, "columns: question is named twice"),
        ],
    )
    def test_fault_in_the_names_is_told(self, columns: str, error: type[Exception], why: str) -> None:
        with pytest.raises(error, match=why):
            fr.read(pl.DataFrame(self.TABLE), columns=columns)


class TestRank:
    def test_keywords_take_lists_or_text(self) -> None:
        frame = pl.DataFrame(COLUMNS)
        listed = fr.rank(frame, metrics=["brier", "log"], gamma=[0, 0.5], bootstrap=0).to_dict()
        text = fr.rank(frame, metrics="brier,log", gamma="0,0.5", bootstrap=0).to_dict()
        assert listed == text
        assert text["settings"]["gammas"] == ["0", "0.5"]

    @pytest.mark.parametrize(("setting", "message"), [({"gamma": 2}, "gamma"), ({"like": "elo"}, "like")])
    def test_setting_out_of_range_is_named(self, setting: dict[str, Any], message: str) -> None:
        with pytest.raises(fr.InvalidSetting, match=message):
            fr.rank(pl.DataFrame(COLUMNS), **setting)

    def test_report_and_pictures_are_written(self, tmp_path: Path) -> None:
        report = fr.rank(pl.DataFrame(COLUMNS), **QUICK, out=tmp_path / "report.json", plots=tmp_path / "plots")
        assert json.loads((tmp_path / "report.json").read_text()) == report.to_dict()
        assert sorted(path.name for path in (tmp_path / "plots").iterdir())[0].endswith(".svg")

    def test_keywords_are_the_options_of_the_command(self) -> None:
        import argparse
        import inspect

        from forecast_rank.cli import add_arguments

        parser = argparse.ArgumentParser(add_help=False)
        add_arguments(parser)
        options = {action.dest: action.default for action in parser._actions if action.option_strings}
        keywords = {
            name: parameter.default
            for name, parameter in inspect.signature(fr.rank).parameters.items()
            if parameter.kind == parameter.KEYWORD_ONLY and name != "progress"
        }
        assert keywords == options


class TestReport:
    def test_to_polars_has_a_row_per_forecaster_and_a_column_per_figure(self, longer: fr.Report) -> None:
        table = longer.to_polars()
        assert table["forecaster"].to_list() == ["ann", "bob", *longer.to_dict()["references"]]
        ann = table.row(by_predicate=pl.col("forecaster") == "ann", named=True)
        assert ann["reference"] is False
        assert ann["brier"] == pytest.approx((0.04 + 0.09) / 2)
        entry = longer.to_dict()["forecasters"]["ann"]
        assert entry["brier_ci"] is not None
        assert [ann["brier_ci_low"], ann["brier_ci_high"]] == entry["brier_ci"]
        assert ann["average_return:0.5"] is None
        assert [ann["rank_ranges:brier_low"], ann["rank_ranges:brier_high"]] == entry["rank_ranges"]["brier"]

    def test_markdown_table_of_a_ranking(self, longer: fr.Report) -> None:
        lines = longer.to_markdown("brier").splitlines()
        assert lines[0].startswith("| # |  | n | coverage | Brier |")
        assert lines[1].startswith("| --: | --- | --: |")
        assert lines[2].startswith("| 1 | ann | 6 | 1.000 | 0.0650 ")
        assert "**Brier score" in longer.to_markdown()

    def test_latex_table_of_a_ranking(self, report: fr.Report) -> None:
        text = report.to_latex("brier")
        assert text.startswith("\\begin{tabular}{rlrrrrrrr}\n\\toprule\n\\# &  & n & coverage & Brier &")
        assert text.endswith("\\bottomrule\n\\end{tabular}\n")

    def test_names_are_escaped(self) -> None:
        frame = pl.DataFrame(COLUMNS | {"forecaster": ["a|b_c", "50% & $", "a|b_c", "50% & $", "x"]})
        report = fr.rank(frame, metrics="brier", bootstrap=0)
        assert "| a\\|b\\_c |" in report.to_markdown("brier")
        assert "50\\% \\& \\$ &" in report.to_latex("brier")

    def test_equals_share_a_rank_and_nothing_is_printed_as_minus_zero(self) -> None:
        columns = {"forecaster": ["ann", "bob", "cy"], "question": ["q"] * 3, "odds": [0.5] * 3, "outcome": [1] * 3}
        report = fr.rank(
            pl.DataFrame({**columns, "probability": [0.8, 0.8, 0.499999]}), metrics="brier,alpha", bootstrap=0
        )
        cells = [[cell.strip() for cell in line.split("|")] for line in report.to_markdown("alpha").splitlines()[2:]]
        ranked = [line[1:3] for line in cells if line[1]]
        assert ranked == [["1", "ann"], ["1", "bob"], ["3", "cy"]]
        assert report.to_dict()["forecasters"]["cy"]["alpha"] == pytest.approx(-1e-6)
        assert "| cy | 0.0000 |" in report.to_markdown("alpha")
        assert "-0.0000" not in report.to_text()

    def test_to_pandas_is_the_same_table(self, report: fr.Report) -> None:
        table, expected = report.to_pandas(), report.to_polars()
        assert list(table.columns) == expected.columns
        assert table["brier"].dropna().tolist() == expected["brier"].drop_nulls().to_list()

    def test_notebooks_show_tables_with_escaped_names(self) -> None:
        frame = pl.DataFrame(COLUMNS | {"forecaster": ["<b>ann", "bob", "<b>ann", "bob", "x"]})
        html = fr.rank(frame, metrics="brier", bootstrap=0)._repr_html_()
        tag_counter = Tags()
        tag_counter.feed(html)
        assert tag_counter.tags["table"] >= 2
        assert tag_counter.tags["b"] == 0
        assert "&lt;b&gt;ann" in html
        assert tag_counter.tags["th"] > 5

    def test_rich_prints_the_tables(self, report: fr.Report) -> None:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=160)
        console.print(report)
        printed = console.file.getvalue()  # type: ignore[attr-defined]
        assert "Brier score, mean form" in printed
        assert "ann" in printed

    def test_text_is_aligned_as_rich_aligns_it(self) -> None:
        from rich.console import Console

        names = ["予報士", "e\u0301va " * 20 + "[b]"]
        frame = pl.DataFrame(COLUMNS | {"forecaster": [*names, *names, "x"], "odds": [0.5] * 5})
        report = fr.rank(frame, bootstrap=0)
        for width in (120, 200):  # some tables are folded in a narrow terminal
            console = Console(file=io.StringIO(), width=width)
            console.print(report)
            printed = console.file.getvalue()  # type: ignore[attr-defined]
            text, heading = report.to_text(width), "Brier score, mean form"
            assert table_lines(text[text.index(heading) :]) == table_lines(printed[printed.index(heading) :])

    def test_pictures_are_axes(self, report: fr.Report) -> None:
        import matplotlib.pyplot as plt

        full = fr.rank(pl.DataFrame(COLUMNS | {"odds": [0.5] * 5}), metrics="brier,log,average_return,calibration,irt")
        try:
            assert full.plot_agreement().get_title("left").startswith("Agreement of rankings")
            assert full.plot_average_return(0.5).get_ylabel() == "mean payoff so far"
            titles = [axes.get_title("left") for axes in full.plot_reliability()]
            assert titles[0].startswith("ann")
            assert len(full.plot_ranks()) == len(full.to_dict()["rankings"])
            assert len(full.plot_ability()) == 2
            with pytest.raises(ValueError, match=r"no figures for average_return_0\.7"):
                full.plot_average_return(0.7)
            with pytest.raises(ValueError, match="no figures for reliability"):
                report.plot_reliability()
        finally:
            plt.close("all")

    def test_unknown_table_is_refused(self, report: fr.Report) -> None:
        with pytest.raises(KeyError, match="no table 'elo'; there are brier"):
            report.to_markdown("elo")

    def test_uncertainty_is_printed_as_intervals_alone(self) -> None:
        generator = np.random.default_rng(4)
        columns = {"question": [f"q{j}" for j in range(30)], "outcome": [0, 1, 1] * 10}
        frame = pl.DataFrame(columns | {name: generator.random(30) for name in ("ann", "bob", "cy")})
        report = fr.rank(frame, metrics="brier,thurstone_mosteller", bootstrap=200)
        content = report.to_dict()
        low, high = content["forecasters"]["ann"]["tm_ability_ci"]
        assert f"[{low:.3f}, {high:.3f}]" in report.to_text(200)
        pair = next(pair for pair in content["pairs"] if {pair["first"], pair["second"]} == {"ann", "bob"})
        assert f"{abs(pair['difference']):.4f} ± {pair['margin']:.4f}" in report.to_text(200)
        assert "difference ± 95% interval (Holm)" in report.to_text(200)

    def test_text_and_repr(self, report: fr.Report) -> None:
        assert str(report).startswith("5 rows: 4 forecasts by 2 on 2 questions of 2 events")
        assert repr(report) == "<Report: 2 forecasters, 2 questions>"


class TestCompare:
    def test_figures_and_ranks_of_two_reports(self) -> None:
        before = {"question": ["q1", "q2"], "outcome": [1, 0], "ann": [1.0, 0.0], "bob": [0.5, 0.5], "cy": [0.5, 0.5]}
        after = {"question": ["q3"], "outcome": [1], "ann": [0.5], "bob": [1.0], "dan": [0.0]}
        report = fr.rank(pl.DataFrame(before), metrics="brier", bootstrap=0)
        table = fr.compare(report, pl.DataFrame(after), metrics="brier", bootstrap=0)
        assert table.rows() == [
            ("ann", 0, 0.25, 0.25, 1, 2),
            ("bob", 0.25, 0, -0.25, 2, 1),
            ("cy", 0.25, None, None, 2, None),
            ("dan", None, 1, None, None, 3),
        ]

    def test_ranking_that_is_not_there_is_named(self, report: fr.Report) -> None:
        assert fr.compare(report, report, ranking="accuracy")["forecaster"].to_list() == ["ann", "bob"]
        with pytest.raises(KeyError, match="no ranking 'elo'; there are brier"):
            fr.compare(report, report, ranking="elo")
        with pytest.raises(fr.InvalidSetting, match="metrics: reports are ranked already"):
            fr.compare(report, report, metrics="log")

    def test_ranking_that_is_compared_need_not_be_the_brier_score(self) -> None:
        frame = pl.DataFrame(LONGER)
        table = fr.compare(frame, frame, metrics="log", bootstrap=0)
        log = fr.rank(frame, metrics="log", bootstrap=0).ranked("log")
        assert dict(table.select("forecaster", "a").rows()) == {name: value for name, (_, value) in log.items()}
        with pytest.raises(KeyError, match="no ranking in common: a has calibration, b has none"):
            fr.compare(fr.rank(frame, metrics="calibration", bootstrap=0), fr.rank(frame, metrics="alpha", bootstrap=0))


class TestImport:
    def loaded(self, code: str) -> set[str]:
        """The top-level packages that a new interpreter has loaded after `code`."""
        script = f"import sys; {code}; print(*{{name.split('.')[0] for name in sys.modules}})"
        return set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.split())

    def test_import_loads_none_of_the_big_libraries(self) -> None:
        loaded = self.loaded("import forecast_rank")
        assert "forecast_rank" in loaded
        assert not loaded & {"numpy", "scipy", "polars", "rich", "matplotlib", "django"}

    def test_score_of_arrays_needs_numpy_alone(self) -> None:
        loaded = self.loaded("import forecast_rank as fr; fr.brier(fr.from_arrays([[[0.8, 0.2]]], [[1, 0]]))")
        assert "numpy" in loaded
        assert not loaded & {"scipy", "polars", "rich", "matplotlib", "django"}

    def test_every_public_name_can_be_loaded(self) -> None:
        for name in fr.__all__:
            assert getattr(fr, name) is not None
        assert set(fr.__all__) <= set(dir(fr))
        with pytest.raises(AttributeError, match="glicko"):
            fr.glicko  # noqa: B018

    def test_type_checkers_see_the_same_names(self) -> None:
        tree = ast.parse(Path(fr.__file__).read_text())
        block = next(node for node in tree.body if isinstance(node, ast.If))
        checker_names = {
            (node.module, alias.name)
            for node in block.body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name == alias.asname
        }
        assert checker_names == {(f"forecast_rank.{module}", name) for name, module in fr._MODULE_OF.items()}


MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(fr.__path__, "forecast_rank.")
    if "__main__" not in module.name and ".metrics." not in module.name
)


def test_examples_are_true() -> None:
    for module in ("forecast_rank", *MODULES):
        assert doctest.testmod(import_module(module), optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0, module


@pytest.mark.parametrize("name", ["compare", "rank", "read", "Report"])
def test_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(fr, name).__doc__ or "")
