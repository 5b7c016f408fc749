"""How often intervals hold: the methodology page says what the documentation's tables say."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from django.test import Client

from arena_site.pages.interval_coverage import MEASURED_ON, RETURNS, RETURNS_COMMAND, SCORES, SCORES_COMMAND, Coverage
from tests.markup import get_page, section, table_rows, visible_text

DOCS = Path(__file__).resolve().parents[3] / "docs"


def rows_of(document: str, name: str) -> list[list[str]]:
    """The cells of each row that begins with this name, in any table of a document."""
    lines = (DOCS / document).read_text().splitlines()
    return [line.strip("| ").split(" | ")[1:] for line in lines if line.lower().startswith(f"| {name.lower()} |")]


def ends(cells: Sequence[str]) -> tuple[float, float]:
    """The least and the largest share, in per cent."""
    shares = [round(100 * float(cell), 1) for cell in cells]
    return min(shares), max(shares)


@pytest.mark.parametrize("row", SCORES, ids=lambda row: row.figure)
def test_coverage_of_a_score_is_that_of_the_documentation(row: Coverage) -> None:
    *_, fifty, ten = rows_of("which-metric.md", row.figure)
    assert (row.few, row.many) == (ends(ten), ends(fifty))


def test_coverage_of_returns_is_that_of_the_documentation() -> None:
    (cells,) = rows_of("methodology.md", "calendar weeks, CR3 (`return_error`)")
    shares = [list(map(float, cell.split("/"))) for cell in cells]
    least_and_largest = [(min(of_size), max(of_size)) for of_size in zip(*shares, strict=True)]
    assert (RETURNS.few, RETURNS.many) == (least_and_largest[0], least_and_largest[-1])


@pytest.mark.parametrize("document", ["which-metric.md", "methodology.md"])
def test_tables_are_of_the_day_that_the_page_names(document: str) -> None:
    assert f"{MEASURED_ON:%-d %B %Y}" in " ".join((DOCS / document).read_text().split())


@pytest.mark.django_db
def test_methodology_shows_the_coverage_of_intervals_and_how_it_was_measured(client: Client) -> None:
    part = section(get_page(client, "/methodology/"), "coverage")
    _, *rows = table_rows(part)
    assert rows[0] == ["Brier score", "96.6–97.8 %", "96.2–97.3 %"]
    assert [row[0] for row in rows] == [*(row.figure for row in SCORES), "Mean return, 6 and 26 cohorts"]
    assert f"Measured on 29 November 2026 by {SCORES_COMMAND} and {RETURNS_COMMAND}" in visible_text(part)
