"""The site by keyboard: every control is reached in order, visibly, and can be left."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.visitor import Visitor
from tests.season.places import Places
from tests.selection import chosen

pytestmark = pytest.mark.browser

STOPS = """() => {
  const seen = e => e.checkVisibility({visibilityProperty: true}) && !e.closest("[inert]");
  const all = "a[href], button, input, select, textarea, summary, [tabindex]";
  const stops = [...document.querySelectorAll(all)].filter(
    e => e.tabIndex >= 0 && !e.disabled && e.type !== "hidden" && seen(e)
  );
  stops.forEach((e, place) => e.dataset.stop = place);
  return stops.map(e => e.outerHTML.slice(0, 100));
}"""
REACHED = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const style = getComputedStyle(e), box = e.getBoundingClientRect();
  return {
    stop: Number(e.dataset.stop ?? -1),
    marked: (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none",
    within: box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
    what: e.outerHTML.slice(0, 100),
  };
}"""
SLACK = 3
"""More presses than stops before a page is called a trap: the browser's own stops at its ends."""

MORE_IN_DATES = 3
"""Stops within a date field besides its first: it has day, month, year and a calendar."""


def walk(visitor: Visitor) -> tuple[list[str], list[dict[str, Any]]]:
    """What can be reached, and what Tab reached from the top of the page until it left it."""
    stops = visitor.page.evaluate(STOPS)
    focus_steps: list[dict[str, Any]] = []
    dates = sum('type="date"' in stop for stop in stops)
    for _ in range(len(stops) + MORE_IN_DATES * dates + SLACK):
        visitor.page.keyboard.press("Tab")
        focus = visitor.page.evaluate(REACHED)
        if focus is None or (focus_steps and focus["stop"] == focus_steps[0]["stop"]):
            return stops, focus_steps
        focus_steps.append(focus)
    raise AssertionError(f"no way out of the page; at last {focus_steps[-4:]}")


@pytest.mark.parametrize(
    "name",
    chosen(
        ["leaderboard", "cohort", "decision with refusals", "markets"],
        ["leaderboard", "cohort", "agent", "family", "market held", "decision with refusals", "question resolved",
         "forecasts", "calibration", "comparison", "methodology", "about", "markets"],
    ),
)  # fmt: skip
def test_tab_reaches_everything_in_order_and_shows_where_it_is(name: str, visitor: Visitor, places: Places) -> None:
    visitor.go(places[name])
    stops, focus_steps = walk(visitor)
    order = [one["stop"] for one in focus_steps]
    assert [stops[missed] for missed in sorted(set(range(len(stops))) - set(order))] == []
    assert order == sorted(order)
    assert [one["what"] for one in focus_steps if not one["marked"]] == []
    assert [one["what"] for one in focus_steps if not one["within"]] == []


def test_the_first_stop_skips_to_the_content(visitor: Visitor, places: Places) -> None:
    visitor.go(places["leaderboard"])
    visitor.page.keyboard.press("Tab")
    skip = visitor.page.locator(":focus")
    assert skip.get_attribute("href") == "#main"
    assert skip.evaluate("e => e.getBoundingClientRect().top >= 0 && e.getBoundingClientRect().left >= 0")
    visitor.page.keyboard.press("Enter")
    assert visitor.page.evaluate("document.activeElement.id") == "main"
    visitor.page.keyboard.press("Tab")
    assert visitor.page.evaluate("document.activeElement.closest('main') !== null")


def test_enter_follows_links_and_opens_details(visitor: Visitor, places: Places) -> None:
    visitor.go(places["trading"])
    visitor.page.get_by_role("link", name="Cohorts", exact=True).focus()
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url("**/cohorts/")
    visitor.go(places["decision with refusals"])
    fold = visitor.page.locator("main details").first
    assert fold.evaluate("e => e.open") is False
    fold.locator("summary").focus()
    visitor.page.keyboard.press("Enter")
    assert fold.evaluate("e => e.open") is True
    visitor.page.keyboard.press("Enter")
    assert fold.evaluate("e => e.open") is False
    assert visitor.faults == []


def test_a_wide_table_is_scrolled_by_the_keyboard(visitor: Visitor, places: Places) -> None:
    visitor.resize(320, "light")
    visitor.go(places["trading"])
    visitor.page.locator("summary", has_text="Data of this chart").click()
    region = visitor.page.locator("figure [role=group][tabindex='0']:has(table)").first
    assert region.evaluate("e => e.scrollWidth > e.clientWidth")
    region.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.wait_for_function("e => e.scrollLeft > 0", arg=region.element_handle())


@pytest.mark.parametrize("options", [{}, {"java_script_enabled": False, "has_touch": True, "width": 390}], ids=str)
def test_term_opens_its_definition_and_escape_closes_it(
    options: dict[str, Any], visitors: Callable[..., Visitor], places: Places
) -> None:
    visitor = visitors(**options)
    visitor.go(places["forecasts"])
    term, definition = (
        visitor.page.locator(".board .term:visible", has_text="Brier").first,
        visitor.page.locator(".definition:popover-open"),
    )
    visitor.page.keyboard.press("Tab")
    for opens in (term.tap if "has_touch" in options else term.click, lambda: term.press("Enter")):
        opens()
        assert definition.is_visible()
        assert definition.inner_text().startswith("Brier score. ")
        assert definition.evaluate("e => e.getBoundingClientRect().left >= 0")
        assert definition.evaluate("e => e.getBoundingClientRect().right <= innerWidth")
        visitor.page.keyboard.press("Escape")
        assert definition.count() == 0
