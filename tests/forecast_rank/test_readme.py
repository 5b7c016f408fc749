"""The library's README lists every public function of the metric modules, and no function that does not exist."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import yaml

import forecast_rank.metrics

LIBRARY = Path(__file__).parents[2] / "packages" / "forecast_rank"
README = (LIBRARY / "README.md").read_text()
INTERNAL = {
    "blocks", "calibration_bins", "cdf_forecasts", "closing_columns", "cluster_robust", "connectivity",
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


def test_every_metric_module_has_a_section() -> None:
    assert sorted(listed_functions()) == METRIC_MODULES


@pytest.mark.parametrize("module", METRIC_MODULES)
def test_section_lists_exactly_the_public_functions(module: str) -> None:
    assert listed_functions()[module] == public_functions(module)


def test_citation_and_changelog_name_the_version() -> None:
    citation = yaml.safe_load((LIBRARY / "CITATION.cff").read_text())
    assert citation["version"] == forecast_rank.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    newest = re.search(r"^## (\S+)", (LIBRARY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest
    assert newest[1] == forecast_rank.__version__
