"""The code of the library's pages is run as it stands there."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import yaml

import forecast_rank as fr
import forecast_rank.metrics
from forecast_rank import metrics
from tests.forecast_rank.simulated_worlds import simulate
from tests.lazy_modules import pl

DOCS = Path(__file__).parents[2] / "packages" / "forecast_rank" / "docs"


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python[^\n]*\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def test_parts_by_file_duckdb_and_dask_give_the_report_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    panel = simulate("clustered", forecasters=3, events=12, seed=1).panel
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
    expected = fr.rank(rows, metrics="brier,log")
    for part in (names["part"], names["with_duckdb"], names["with_dask"]):
        report = part.report()
        assert report.to_dict()["rankings"] == expected.to_dict()["rankings"]
        assert [pair["p"] for pair in report.to_dict()["pairs"]] == pytest.approx(
            [pair["p"] for pair in expected.to_dict()["pairs"]]
        )
    assert capsys.readouterr().out.count("| 1 | f0 |") == 3


def test_example_of_another_packages_score_runs(capsys: pytest.CaptureFixture) -> None:
    for code in blocks("elsewhere.md"):
        exec(code, {})
    assert capsys.readouterr().out.startswith("[-0.2]")


# --- The library's README lists every public function of the metric modules, and no function that does not exist

LIBRARY = Path(__file__).parents[2] / "packages" / "forecast_rank"
README = (LIBRARY / "README.md").read_text()
INTERNAL = {
    "blocks", "calibration_bins", "closing_columns", "cluster_robust", "connectivity",
    "distinct_pairs", "event_groups", "flat_arrays",
    "irt_marginal_over_forecasters", "irt_marginal_over_questions", "irt_responses", "linear_pool", "pair_sums",
    "pairwise_comparisons", "panel", "staking", "standing_forecasts",
}  # fmt: skip
"""Modules of shared computations without a metric of their own."""
METRIC_MODULES = sorted({module.name for module in pkgutil.iter_modules(forecast_rank.metrics.__path__)} - INTERNAL)


def public_functions(module: str) -> set[str]:
    functions = inspect.getmembers(importlib.import_module(f"forecast_rank.metrics.{module}"), inspect.isfunction)
    return {name for name, function in functions if function.__module__.endswith(f".{module}") and name[0] != "_"}


def listed_functions() -> dict[str, set[str]]:
    """The functions in the first column of the table below each module's heading."""
    sections = re.split(r"^### ", README, flags=re.MULTILINE)[1:]
    listed: dict[str, set[str]] = {}
    for section in sections:
        for module in re.findall(r"`(\w+)`", section.partition("\n")[0]):
            rows = re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)
            listed.setdefault(module, set()).update(name for row in rows for name in re.findall(r"`(\w+)`", row))
    return listed


def test_section_of_each_metric_module_lists_exactly_its_public_functions() -> None:
    assert listed_functions() == {module: public_functions(module) for module in METRIC_MODULES}


def test_citation_and_changelog_name_the_version() -> None:
    citation = yaml.safe_load((LIBRARY / "CITATION.cff").read_text())
    assert citation["version"] == forecast_rank.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    newest = re.search(r"^## (\S+)", (LIBRARY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest[1] == forecast_rank.__version__


# --- The examples of the scoring maths are run, and everything public says what the caller gets

MODULES = sorted(f"{metrics.__name__}.{module.name}" for module in pkgutil.iter_modules(metrics.__path__))
INSIDE = {
    f"forecast_rank.metrics.{name}"
    for name in (
        "blocks",
        "flat_arrays",
        "staking",
        "calibration_bins",
        "linear_pool",
        "irt_marginal_over_forecasters",
        "irt_marginal_over_questions",
    )
}
"""The workings that the metrics share: shown by the examples of those."""


def test_examples_are_true() -> None:
    for name in MODULES:
        results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
        assert results.failed == 0, name
        assert results.attempted or name in INSIDE, name


def test_all_that_is_public_says_what_the_caller_gets() -> None:
    without_docstring = []
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__, name
        for label, thing in vars(module).items():
            is_public_here = getattr(thing, "__module__", None) == name and not label.startswith("_")
            if is_public_here and (inspect.isfunction(thing) or inspect.isclass(thing)) and not inspect.getdoc(thing):
                without_docstring.append(f"{name}.{label}")
    assert without_docstring == []
