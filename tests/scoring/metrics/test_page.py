"""The page that explains the suite names every metric of it, and no function that is not there."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import scoring.metrics
from scoring.metrics.pairs import Pairs

PAGE = (Path(scoring.metrics.__path__[0]) / "README.md").read_text()
SUPPORT = {
    "accounts", "binning", "contests", "games", "irt_forecasters", "irt_questions", "linked", "panel", "responses",
    "sandwich",
}  # fmt: skip
"""What metrics are made of, none themselves."""
MODULES = {module.name for module in pkgutil.iter_modules(scoring.metrics.__path__)}


def public(module: str) -> set[str]:
    found = inspect.getmembers(importlib.import_module(f"scoring.metrics.{module}"), inspect.isfunction)
    return {name for name, function in found if function.__module__.endswith(f".{module}") and name[0] != "_"}


def sections() -> dict[str, str]:
    """The text under each heading that names modules, by module."""
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    return {name: part for part in parts for name in re.findall(r"`(\w+)`", part.partition("\n")[0])}


def test_every_module_has_its_section() -> None:
    assert set(sections()) == MODULES - SUPPORT


@pytest.mark.parametrize("module", sorted(MODULES - SUPPORT))
def test_every_metric_is_explained(module: str) -> None:
    assert public(module) <= set(re.findall(r"`(\w+)`", sections()[module]))


@pytest.mark.parametrize("module", sorted(MODULES - SUPPORT))
def test_no_row_explains_what_is_not_there(module: str) -> None:
    text = sections()[module]
    together = [name for name, other in sections().items() if other == text]
    there = set(Pairs._fields).union(*(public(name) for name in together))
    assert set(re.findall(r"^\| `(\w+)`", text, re.MULTILINE)) <= there
