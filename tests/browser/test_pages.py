"""Every page of a played season in a real browser: narrow and wide, light and dark, with its scripts and without."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.visitor import THEMES, WIDTHS, Visitor
from tests.season.places import FOREIGN, LAYOUTS, NAMES, STATUS, Places
from tests.selection import chosen

pytestmark = [pytest.mark.slow, pytest.mark.browser]

BODY = """() => ({
  mains: document.querySelectorAll("main").length,
  headings: [...document.querySelectorAll("h1")].map(h => h.innerText.trim()),
  title: document.title,
  description: document.querySelector("meta[name=description]")?.content ?? "",
  charts: [...document.querySelectorAll("figure.chart")].map(f => ({
    drawn: f.querySelector(".plot > svg")?.getBoundingClientRect().height > 100,
    sentence: !!f.querySelector("figcaption")?.textContent.trim().includes("."),
    axes: f.querySelectorAll(".axis-title").length >= 2,
    files: ["csv", "png", "svg"].every(kind => f.querySelector(`a[href*=".${kind}"]`)),
    rows: f.querySelectorAll("table tbody tr").length > 0,
  })),
  language: document.documentElement.lang,
  text: [...document.querySelectorAll("main *:not(pre, code, blockquote)")].flatMap(
    e => [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data)
  ).join("\\n"),
})"""
CUT_OFF = """() => [...document.querySelectorAll(".scrollable")]
  .filter(e => e.scrollWidth > e.clientWidth).map(e => `${e.getAttribute("aria-labelledby")}: ${e.scrollWidth}`)"""
"""Tables that must be scrolled sideways."""
WHOLE = {"drawn": True, "sentence": True, "axes": True, "files": True, "rows": True}
"""A chart as anybody gets it: a drawing with a sentence, titles of its axes, its files, and its data as a table."""
NOT_VALUES = re.compile(r"^.*(?:\bNone\b(?! of these)|\bnan\b|\bundefined\b|\bNaN\b|\{\{|\}\}|\{%).*", re.MULTILINE)
"""Words on a page whose template or script was given no value."""


EXTREMES = (
    "market with a hostile question", "market with an endless word", "decision with hostile reasoning", "not found",
    "API documentation",
)  # fmt: skip
"""Pages that would break a rule first."""


LISTS = {
    "markets", "questions", "decisions", "trades", "universe", "universe’s entry", "search",
    "API documentation",
}  # fmt: skip
"""Pages of many rows, which may be as long as their rows."""
PHONE_WIDTH, MOST_HEIGHT = 390, 6_000
SMALL_TEXTS = """() => [...document.querySelectorAll("svg text")].filter(text => {
  const matrix = text.getScreenCTM();
  if (!matrix || !text.textContent.trim() || !text.checkVisibility()) return false;
  return parseFloat(getComputedStyle(text).fontSize) * Math.hypot(matrix.b, matrix.d) < 10.95;
}).map(text => text.textContent.trim())"""


@pytest.mark.parametrize("name", chosen((*LAYOUTS, *EXTREMES), NAMES))
def test_a_page_keeps_the_rules_at_each_width_and_in_both_themes(name: str, visitor: Visitor, places: Places) -> None:
    visitor.go(places[name], status=STATUS.get(name, 200))
    wide = {}
    for theme in THEMES:
        for width in WIDTHS:
            visitor.resize(width, theme)
            visitor.settle()
            wide[theme, width] = visitor.too_wide()
    visitor.resize(PHONE_WIDTH, "light")
    visitor.settle()
    if name not in LISTS:
        assert visitor.page.evaluate("document.documentElement.scrollHeight") <= MOST_HEIGHT
    assert visitor.page.evaluate(SMALL_TEXTS) == []
    assert not visitor.faults, "\n".join(visitor.faults)
    if name not in FOREIGN:
        assert {look: page_faults for look, page_faults in wide.items() if page_faults} == {}
        well_formed(visitor.page.evaluate(BODY))


@pytest.mark.parametrize("name", chosen(LAYOUTS, [name for name in NAMES if name not in FOREIGN]))
def test_page_is_complete_without_javascript(
    name: str, visitors: Callable[..., Visitor], places: Places, visitor: Visitor
) -> None:
    plain = visitors(java_script_enabled=False)
    plain.reset()
    plain.go(places[name], status=STATUS.get(name, 200))
    wide = {}
    for width in WIDTHS:
        plain.resize(width, "light")
        wide[width] = plain.too_wide()
    assert {width: page_faults for width, page_faults in wide.items() if page_faults} == {}
    assert not plain.faults, "\n".join(plain.faults)
    body = plain.page.evaluate(BODY)
    well_formed(body)
    assert [chart for chart in body["charts"] if chart != WHOLE] == []


def well_formed(body: dict[str, Any]) -> None:
    assert (body["mains"], len(body["headings"])) == (1, 1)
    assert all(body["headings"])
    assert body["language"] == "en"
    assert 10 <= len(body["title"]) <= 200
    assert 30 <= len(body["description"]) <= 400
    assert NOT_VALUES.findall(re.sub(r"\{\{ 7(\|add:7 \}\}|…)", "", body["text"])) == []


@pytest.mark.parametrize(("width", "height"), [(1440, 900), (PHONE_WIDTH, 844)])
def test_front_page_shows_answer_picture_and_table_on_its_first_screen(
    width: int, height: int, visitor: Visitor, places: Places
) -> None:
    visitor.page.set_viewport_size({"width": width, "height": height})
    visitor.go(places["leaderboard"])
    visitor.settle()
    tops = "all => all.map(e => e.getBoundingClientRect().top)"
    parts = (".answer", ".intervals ol", ".board thead")
    places_on_page = [visitor.page.locator(part).evaluate_all(tops)[0] for part in parts]
    assert 0 < places_on_page[0] < places_on_page[1] <= max(places_on_page[1:]) < height
    assert [visitor.page.locator(f"{part} a").count() > 0 for part in (".lines", ".intervals")] == [True, True]


def test_no_column_of_a_table_is_cut_off_on_a_desktop(visitor: Visitor, places: Places) -> None:
    cut = {}
    for name in (
        "leaderboard",
        "trading",
        "forecasts",
        "cohort",
        "agent",
        "trades",
        "family",
        "markets",
        "decision to sell",
    ):
        visitor.go(places[name])
        visitor.settle()
        cut[name] = visitor.page.evaluate(CUT_OFF)
    assert {name: tables for name, tables in cut.items() if tables} == {}


PHONE = (
    "leaderboard", "question of a race", "decision to sell", "trading", "comparisons", "comparison", "agent",
    "forecasts",
)  # fmt: skip


@pytest.mark.parametrize("name", chosen(PHONE[:3], PHONE))
def test_on_a_phone_rows_are_cards_that_name_their_columns(visitor: Visitor, places: Places, name: str) -> None:
    visitor.resize(390, "light")
    visitor.go(places[name])
    visitor.settle()
    assert [cut for cut in visitor.page.evaluate(CUT_OFF) if not cut.startswith("null")] == []  # null: data of charts
    cells = visitor.page.locator(".stacked tbody td")
    labels = cells.evaluate_all("cells => cells.map(cell => getComputedStyle(cell, '::before').content)")
    assert labels
    assert not {"none", "normal", '""'} & set(labels)
    assert visitor.faults == []


def test_card_names_a_column_without_the_note_in_its_heading(visitor: Visitor, places: Places) -> None:
    visitor.resize(390, "light")
    visitor.go(places["forecasts by time"])
    visitor.settle()
    labels = visitor.page.locator("table[aria-labelledby=brier] tbody tr:first-child td").evaluate_all(
        "cells => cells.map(cell => cell.dataset.label)"
    )
    assert labels == ["Under 1", "1 to 3", "3 to 7", "7 to 14", "14 to 30", "30 and more"]


def test_on_paper_stand_all_columns_the_address_and_the_date_and_no_forms(visitor: Visitor, places: Places) -> None:
    visitor.resize(720, "light")
    visitor.go(places["forecasts"])
    visitor.page.emulate_media(media="print")
    try:
        assert visitor.page.evaluate(CUT_OFF) == []
        assert visitor.page.locator("form:visible, a.sort:visible, .toolbar:visible").count() == 0
        folds = "all => all.filter(e => !e.checkVisibility({contentVisibilityAuto: true})).map(e => e.textContent)"
        assert visitor.page.locator("details:not(.image-code) > :not(.cite pre)").evaluate_all(folds) == []
        codes = visitor.page.locator(".image-code, .cite pre")
        assert codes.count() > 2
        assert codes.locator("visible=true").count() == 0  # nobody copies code from paper
        lists = "all => all.filter(e => getComputedStyle(e).display === 'list-item').length"
        assert visitor.page.locator("summary").evaluate_all(lists) == 0  # no triangles: nothing folds on paper
        marks = "all => all.map(e => getComputedStyle(e, '::after').content).filter(mark => mark !== 'none')"
        assert visitor.page.locator(".sort").evaluate_all(marks) == []
        headings = visitor.page.locator("#forecasts-and-trades ~ details thead th").all_inner_texts()
        assert len(headings) == len(list(filter(None, headings))) == 12
        source = visitor.page.locator(".print-source").inner_text()
        assert re.search(r"/forecasts/ · \d+ [A-Z][a-z]{2} \d{4}$", source)
    finally:
        visitor.page.emulate_media(media="screen")


def test_forecasts_page_is_passed_by_few_tab_stops(visitor: Visitor, places: Places) -> None:
    visitor.resize(1440, "light")
    visitor.go(places["forecasts"])
    visitor.settle()
    stops = visitor.page.locator("a[href], button, input, select, summary, [tabindex='0']")
    visible_stops = stops.evaluate_all(
        "all => all.filter(e => e.checkVisibility({contentVisibilityAuto: true})).length"
    )
    assert visible_stops < 200


def test_a_heading_sorts_its_table_both_ways(visitor: Visitor, places: Places) -> None:
    visitor.go(places["leaderboard"])
    heading = visitor.page.locator(".board th", has_text="Alpha")
    for order in ("ascending", "descending"):
        with visitor.page.expect_navigation():
            heading.locator(".sort").click()
        assert heading.get_attribute("aria-sort") == order
        cells = [text.split()[0] for text in visitor.page.locator(".board td:nth-child(5)").all_inner_texts()]
        values = [float(text.replace("−", "-")) for text in cells if text != "–"]
        assert values == sorted(values, reverse=order == "descending")
        assert len(values) > 3
        assert cells[-1] == "–", "the market has no alpha"
