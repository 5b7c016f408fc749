"""README.md and LICENSE.txt of an archive."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forecast_rank.files.descriptions import Dataset
from markets.sources.registry import SOURCES

DATASET = Dataset(
    name="forecaster-arena",
    title="Forecaster Arena: forecasts and paper trades of language models",
    summary="Decisions, forecasts, trades, prices and scores of language models that forecast real events.",
    url="/data/",
    creator="Forecaster Arena",
    license="CC-BY-4.0",
    license_url="https://creativecommons.org/licenses/by/4.0/",
    terms="CC BY 4.0 for the arena's own data; venues' texts and prices and models' outputs by their owners' terms.",
)
TEXTS = Path(__file__).parents[2] / "templates" / "archive"


def license_text() -> str:
    """The terms of reuse."""
    venues = ", ".join(source.label for source in SOURCES.values())
    return (TEXTS / "LICENSE.txt").read_text(encoding="utf-8").format(venues=venues)


def readme_text(selection: Mapping[str, Any], at: str) -> str:
    """The README of an archive."""
    narrowed_by = ", ".join(f"{name} {value}" for name, value in selection.items() if value is not None)
    return (TEXTS / "README.md").read_text(encoding="utf-8").format(at=at, selection=narrowed_by or "everything")
